"""Arithmetic and elementary functions on vectors."""
