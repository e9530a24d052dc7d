"""A kernel and its body over an exact ring, where they must be equal bit for bit.

See docs/proofs.md for what stands for what.
"""
