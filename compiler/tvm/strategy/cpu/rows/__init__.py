"""Reductions on a CPU, and all that is computed from the same rows."""
