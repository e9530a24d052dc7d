"""Chains of stages on a CPU: a block of rows goes through all of them while it is near."""
