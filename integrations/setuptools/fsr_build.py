"""A ``build_ext`` for setuptools that compiles .cu files with nvcc through fsr-launch, and torch's the same way.

    from fsr_build import CudaBuild
    setup(cmdclass={"build_ext": CudaBuild}, ext_modules=[Extension("name", ["kernel.cu", "module.cpp"])])

An extension's ``extra_compile_args`` may be a dictionary: ``{"nvcc": ["-arch=sm_90"], "cxx": ["-O3"]}``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from setuptools.command.build_ext import build_ext


def nvcc_command() -> list[str]:
    """``fsr-launch nvcc``, or nvcc alone where fsr is not installed."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise RuntimeError("nvcc is not on the PATH: install a CUDA toolkit, or pip install nvidia-cuda-nvcc")
    launcher = shutil.which("fsr-launch")
    return [nvcc] if launcher is None else [launcher, nvcc]


def through_launcher() -> None:
    """Have torch.utils.cpp_extension compile .cu files through fsr-launch: call it before ``load`` or ``setup``.

    torch writes PYTORCH_NVCC into the Ninja file that it builds with."""
    os.environ.setdefault("PYTORCH_NVCC", " ".join(nvcc_command()))


class CudaBuild(build_ext):
    """Compiles .cu files with nvcc; all else as setuptools does, linked with the static CUDA runtime."""

    def build_extensions(self) -> None:
        """Build all extensions."""
        compiler = self.compiler
        compiler.src_extensions.append(".cu")
        plain = compiler._compile

        def compile_one(obj: str, src: str, ext: str, cc_args: Any, extra: Any, pp_opts: list[str]) -> None:
            given = extra if isinstance(extra, dict) else {"nvcc": list(extra), "cxx": list(extra)}
            if ext != ".cu":
                plain(obj, src, ext, cc_args, given.get("cxx", []), pp_opts)
                return
            words = [*nvcc_command(), "-Xcompiler=-fPIC", *pp_opts, *given.get("nvcc", []), "-c", src, "-o", obj]
            compiler.spawn(words)

        compiler._compile = compile_one
        for extension in self.extensions:
            if any(source.endswith(".cu") for source in extension.sources):
                extension.library_dirs += _library_folders()
                extension.libraries += ["cudart_static", "rt", "dl", "pthread"]
        super().build_extensions()


def _library_folders() -> list[str]:
    """Where the toolkit of the nvcc that is used keeps the runtime, in its layouts; nvcc itself says where that is."""
    words = [nvcc_command()[-1], "--dryrun", "-x", "cu", "-c", os.devnull, "-o", "none.o"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    found = re.search(r"^#\$ TOP=(.+)$", told, re.MULTILINE)
    home = Path(os.environ.get("CUDA_HOME") or (found.group(1).strip() if found else "/usr/local/cuda"))
    places = [home / "lib64", home / "lib", home / "targets" / "x86_64-linux" / "lib"]
    return [str(place) for place in places if (place / "libcudart_static.a").is_file()]
