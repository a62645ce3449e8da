"""torch.utils.cpp_extension: the kernel is compiled as its winner. Needs torch, Ninja and a CUDA toolkit; a GPU to run.

Keep PYBIND11_MODULE out of the .cu file: torch sets TORCH_EXTENSION_NAME there, and a file that names a macro that is
set on the command line and not in its contract keeps the original.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "setuptools"))

from fsr_build import through_launcher  # noqa: E402


def main() -> int:
    """Build, scale an array; 0 when it is right."""
    through_launcher()
    import torch
    from torch.utils.cpp_extension import load

    sources = [str(HERE.parent / "kernels" / "scale.cu"), str(HERE / "binding.cpp")]
    scaling = load("scaling", sources, extra_cuda_cflags=["-arch=sm_90"], verbose=True)
    x = torch.full((1000,), 2.0, device="cuda")
    return 0 if bool((scaling.scale(x) == 6.0).all()) else 1


if __name__ == "__main__":
    sys.exit(main())
