"""Triton kernels for NVIDIA GPUs; each speeds up torch code of the folder above."""
