"""What makes, checks, measures and keeps a kernel, whether just in time or ahead of time.

`tuned` is the file of what tuning found, and `chosen` what a kernel is to be made with: both are
asked here, by whoever compiles, and written by `composite.tuning`.
"""
