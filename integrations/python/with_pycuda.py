"""PyCUDA: the winner of scale.cu where there is one for this GPU, else the kernel itself."""

from __future__ import annotations

import sys
from pathlib import Path

import fsr

KERNEL = Path(__file__).parents[1] / "kernels" / "scale.cu"


def main() -> int:
    """Scale an array; 0 when it is right."""
    import numpy
    import pycuda.autoinit
    from pycuda import driver
    from pycuda.compiler import SourceModule

    source = fsr.lookup_source(KERNEL)
    module = SourceModule(source.text, options=source.nvcc_options)
    x = numpy.full(1000, 2.0, dtype=numpy.float32)
    y = numpy.empty_like(x)
    grid, block = ((x.size + 255) // 256, 1), (256, 1, 1)
    module.get_function("scale")(driver.In(x), driver.Out(y), numpy.int32(x.size), grid=grid, block=block)
    pycuda.autoinit.context.synchronize()
    print("winner" if source.winner else f"original: {source.why}")
    return 0 if bool((y == 6.0).all()) else 1


if __name__ == "__main__":
    sys.exit(main())
