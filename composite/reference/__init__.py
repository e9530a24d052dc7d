"""What results are held against: an expansion node by node, in float64, with other roundings.

And on which numbers, and how far from it a result may be. Kernels and `composite.check` are judged
by the same. Not for: what is judged (composite/kernels, composite/checking).
"""
