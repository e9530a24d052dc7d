"""Kernels for NVIDIA's GPUs: CUDA source, what a launch of it needs, and machine code by NVRTC."""
