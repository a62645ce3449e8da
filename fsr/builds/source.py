"""The source that a program compiles at run time: the winner where it may be used, else the kernel as it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsr.builds.many import fitting
from fsr.cache.layers import Layers
from fsr.errors import FsrError, UsageError


@dataclass(frozen=True, slots=True)
class KernelSource:
    """What to compile in a kernel file's place.

    text: the source. flags: to be added to the compiler's, nvcc's spelling; none for the original. folder: where its
    own includes are searched. winner: whether it is one. why: a sentence that says why it is not; '' for a winner."""

    text: str
    flags: tuple[str, ...]
    folder: Path
    winner: bool
    why: str

    @property
    def nvcc_options(self) -> list[str]:
        """Options for nvcc, as PyCUDA's ``SourceModule(options=...)`` takes them: flags and the folder of includes."""
        return [*self.flags, f"-I{self.folder}"]

    @property
    def nvrtc_options(self) -> tuple[str, ...]:
        """Options for NVRTC, as CuPy's ``RawModule(options=...)`` takes them."""
        return (*(flag.replace("-Xptxas=", "--ptxas-options=") for flag in self.flags), f"-I{self.folder}")


def source_for(kernel: Path, flags: Sequence[str], device: int, layers: Layers) -> KernelSource:
    """The source for GPU ``device``, compiled for its architecture with ``flags`` and launched as the kernel is.

    A cache that cannot be used is as good as none. Raises UsageError when the kernel cannot be read."""
    try:
        original = kernel.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as fault:
        raise UsageError(
            f"the kernel file cannot be read: {fault.strerror}", where=str(kernel), fix="check the path"
        ) from None
    folder = kernel.absolute().parent
    try:
        hardware = layers.hardware(device)
        found = None if hardware is None else layers.find(str(kernel), device=device, given=None)
        if hardware is None or found is None:
            why = f"no winner for {kernel} on this hardware; `fsr lookup --explain {kernel}` says why"
            return KernelSource(original, (), folder, False, why)
        chosen = fitting(found, kernel, shlex.join([f"-arch={hardware.arch}", *flags]))
    except (FsrError, OSError, KeyError, TypeError, ValueError) as fault:
        return KernelSource(original, (), folder, False, f"the cache cannot be used: {fault}")
    if isinstance(chosen, str):
        return KernelSource(original, (), folder, False, chosen)
    return KernelSource(chosen.text, chosen.flags, folder, True, "")
