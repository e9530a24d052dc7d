"""Calls that functions are tried with: inputs that are drawn, and how far results moved."""
