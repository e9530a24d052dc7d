"""What calls that take long tell of themselves: which part is being made, how many are left.

`activity` is what such a call reports to, `event` what it tells, `listening` who is told unless the
caller says who, `making` what the threads that make kernels are at.
"""
