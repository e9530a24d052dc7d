"""Convolutions, pools and their gradients, on a CPU."""
