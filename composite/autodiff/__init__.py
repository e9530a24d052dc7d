"""Gradients of ops: made by differentiating the expansion, or given by the author."""
