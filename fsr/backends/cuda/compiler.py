"""Chooses the CUDA compiler: NVRTC where it loads, else nvcc."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fsr.backends.cuda.nvcc import NvccToolchain
from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.toolchain import Toolchain
from fsr.errors import MissingToolError


def cuda_toolchain(arch: str = "sm_90", include_dirs: Sequence[Path] = ()) -> Toolchain:
    """The CUDA toolchain of this machine. Raises MissingToolError, naming both, when there is none."""
    try:
        return NvrtcToolchain(arch, include_dirs)
    except MissingToolError as without_nvrtc:
        try:
            return NvccToolchain(arch, include_dirs)
        except MissingToolError:
            raise MissingToolError(
                "no CUDA compiler: neither NVRTC nor nvcc can be loaded",
                expected="the package nvidia-cuda-nvrtc, or the CUDA toolkit's nvcc",
                fix="pip install 'fsr[nvrtc]'",
            ) from without_nvrtc
