"""Strategies for CPUs: how a stage becomes loops over threads, vectors and registers."""
