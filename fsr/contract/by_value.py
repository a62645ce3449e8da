"""Structures that a kernel takes by value and that cannot be taken apart: why, and what can be done instead."""

from __future__ import annotations

import re

from fsr.errors import ContractError
from fsr.source.signature import Parameter


def is_structure(param: Parameter) -> bool:
    """Whether a parameter is passed by value and is a vector, or of a type that is not known to be a number."""
    return not param.pointer and (param.dtype is None or param.lanes > 1)


def is_declared(param: Parameter, text: str) -> bool:
    """Whether it is certainly one: what a file's text declares as a structure."""
    names = "|".join(re.findall(r"\w+", param.type))
    declared = rf"\b(?:struct|class|union)\b[^;{{}}]*\b(?:{names})\s*(?:final\s*)?[{{:]|}}\s*(?:{names})\s*;"
    return is_structure(param) and (param.lanes > 1 or re.search(declared, text) is not None)


def refused(kernel: str, param: Parameter, where: str, *, why: str = "", certain: bool = False) -> ContractError:
    """The error for one; ``kernel``: what takes it. ``why``: it cannot be taken apart, where that is known.
    ``certain``: see :func:`is_declared`."""
    name = param.name
    fix = (
        f"put a kernel beside it that takes the members of {name} as numbers, puts them together, and calls what "
        f"{kernel} does as a __device__ function; name that one as entry"
    )
    if not certain and param.lanes == 1 and "declared in no file" in (why or "declared in no file"):
        fix = f"name the folder of the header that declares it with -I or in include_dirs, or {fix}"
        fix += f'. Where {param.type} is another name for a number: {name} = {{dtype = "int32", value = "n"}}, say'
    return ContractError(
        f"{kernel} takes {name} as {param.type!r} by value, which cannot be taken apart: "
        + (why or "it is declared in no file that fsr has read"),
        expected="numbers, pointers, and structures of them that are declared in the kernel's file or an include of it",
        where=where, fix=fix,
    )  # fmt: skip
