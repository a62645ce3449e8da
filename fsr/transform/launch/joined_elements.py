"""The elements of buffers that are kept in shared memory for a while: numbers, vectors of them, and records of them."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.analysis.records_of_numbers import numbers_in
from fsr.analysis.types import resolved
from fsr.hardware.c_types import LANES, dtype_bytes, element_bytes
from fsr.source.form import Param
from fsr.source.types import COMPLEX
from fsr.transform.target import Target


@dataclass(frozen=True, slots=True)
class Element:
    """``bytes`` of an element, and how many there are, as a size expression."""

    bytes: int
    count: str


def element_of(target: Target, param: Param) -> Element | None:
    """The elements behind a pointer; None where they are more than numbers, or are not those of the contract."""
    plain = resolved(param.type, target.aliases)
    plain = COMPLEX.get(plain, plain)
    size, number, count = element_bytes(plain), element_bytes(plain), 1
    if plain in LANES:
        kind, count = LANES[plain]
        number, size = kind.bytes, kind.bytes * count
        whole_at_once = 16 if size % 16 == 0 else size if count != 3 else number
        if target.argument(param.name) is not None and target.alignment(param.name) < whole_at_once:
            return None  # a kernel that goes to members alone may do with less than a copy of all
    elif size is None:
        record = numbers_in(target.source, plain)
        if record is None:
            return None
        number, count = element_bytes(record[0]), record[1]
        size = (number or 0) * count
    scratch = {s.name: (s.dtype, s.count) for s in target.candidate.plan.scratch}
    argument = target.argument(param.name)
    dtype, whole = scratch.get(target.passed[param.name], ("", "")) if argument is None else (
        argument.dtype, target.elements(param.name) or "1")  # fmt: skip
    held = dtype_bytes(dtype)
    if not size or not held or (number != held and size != held):
        return None
    each = size // held
    return Element(size, whole if each == 1 else f"({whole}) // {each}")
