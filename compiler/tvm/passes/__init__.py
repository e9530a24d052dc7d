"""Passes over the lowered function, from valid to valid."""
