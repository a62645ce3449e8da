"""NVIDIA GPUs through PyCUDA."""

from fsr.devices.cuda.device import CudaDevice

__all__ = ["CudaDevice"]
