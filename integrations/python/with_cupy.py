"""CuPy: the winner of scale.cu where there is one for this GPU, else the kernel itself."""

from __future__ import annotations

import sys
from pathlib import Path

import fsr

KERNEL = Path(__file__).parents[1] / "kernels" / "scale.cu"


def main() -> int:
    """Scale an array; 0 when it is right."""
    import cupy

    source = fsr.lookup_source(KERNEL)
    module = cupy.RawModule(code=source.text, options=source.nvrtc_options, name_expressions=["scale"])
    x = cupy.full(1000, 2.0, dtype=cupy.float32)
    y = cupy.empty_like(x)
    module.get_function("scale")(((x.size + 255) // 256,), (256,), (x, y, cupy.int32(x.size)))
    print("winner" if source.winner else f"original: {source.why}")
    return 0 if bool((y == 6.0).all()) else 1


if __name__ == "__main__":
    sys.exit(main())
