"""The training loop, its steppers and CUDA-graph capture."""
