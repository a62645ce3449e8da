"""An extension module whose kernel is compiled as its winner: python setup.py build_ext --inplace"""

from fsr_build import CudaBuild
from setuptools import Extension, setup

setup(
    name="scaling",
    version="0",
    ext_modules=[
        Extension(
            "scaling", ["../kernels/scale.cu", "module.cpp"],
            language="c++", extra_compile_args={"nvcc": ["-arch=sm_90"], "cxx": ["-O2"]},
        )
    ],
    cmdclass={"build_ext": CudaBuild},
)  # fmt: skip
