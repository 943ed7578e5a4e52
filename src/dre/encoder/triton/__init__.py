"""Kernels for NVIDIA GPUs; each has a plain torch twin beside this folder."""
