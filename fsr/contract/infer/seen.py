"""What the code shows of one argument, for the error that asks for its entry."""

from __future__ import annotations

from collections.abc import Container

from fsr.contract.infer.arguments import argument
from fsr.contract.infer.infer import walked
from fsr.contract.model import Argument
from fsr.errors import FsrError
from fsr.expressions import names
from fsr.source.file import KernelFile


def seen_argument(file: KernelFile, entry: str, name: str, sizes: Container[str]) -> Argument | None:
    """The buffer ``name`` of a kernel as its index expressions and guards show it; None where they leave doubt, or
    where its extents are no numbers made of ``sizes``, the contract's."""
    try:
        found = walked(file, entry)
        param = found.signature.param(name)
        seen = None if param is None or not param.pointer else argument(found, param)
        known = seen is not None and all(n in sizes for text in seen.shape for n in names(text))
    except FsrError:
        return None
    return seen if known else None
