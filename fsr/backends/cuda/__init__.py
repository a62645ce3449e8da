"""NVIDIA GPUs through PyCUDA."""

from fsr.backends.cuda.device import CudaDevice

__all__ = ["CudaDevice"]
