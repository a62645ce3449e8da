"""Planes that are read at the same places, which data tells (the coordinates of neighbours), as records: a first stage
puts their elements side by side in scratch memory, so that all of a place is looked up by one access.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fsr.computation.canonical import DIMS
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Affine, Const, Expr, Load, Number, affine, children, distinct, rebuilt
from fsr.hardware.c_types import BY_DTYPE
from fsr.transform.computed.parts import RECORDS, number_of, value_of, written_out

_MOST_BYTES = 16  # of a record: one access
_Plane = tuple[str, tuple[Expr | None, ...], str]  # a buffer, its indices but for the one that data tells, its type


def planes_as_records(c: Computation) -> Iterator[Computation]:
    """The computation with a first stage that puts what is read of several planes at the same place side by side; none
    where nothing is, or where it writes the planes."""
    whole = written_out(c)
    if whole is None:
        return
    c = whole
    wanted = dict[Expr, dict[_Plane, None]]()
    for x in (e for s in c.statements for e in distinct(value_of(s))):
        if isinstance(x, Load) and (found := _plane(x)):
            wanted.setdefault(found[0], {})[found[1]] = None
    names = dict[tuple[_Plane, ...], str]()
    for planes in map(tuple, wanted.values()):
        if _fit(planes, c):
            names.setdefault(planes, f"{RECORDS}{len(names) + 1}")
    if names:
        of = {at: (names[tuple(planes)], list(planes)) for at, planes in wanted.items() if tuple(planes) in names}
        told = tuple(replace(s, value=_from_records(value_of(s), of)) for s in c.statements)
        first = tuple(made for planes, name in names.items() for made in _laid(planes, name, c))
        buffers = tuple(_buffer(planes, name, c) for planes, name in names.items())
        yield replace(c, buffers=(*c.buffers, *buffers), statements=(*first, *told))


def _plane(x: Load) -> tuple[Expr, _Plane] | None:
    """Where data says that an element is in its plane, and the plane; None for one whose place is told otherwise."""
    told = [n for n, i in enumerate(x.indices) if number_of(i) is None]
    if len(told) != 1 or x.carries or not any(isinstance(e, Load) and e.indices for e in distinct(x.indices[told[0]])):
        return None
    rest = tuple(None if n == told[0] else i for n, i in enumerate(x.indices))
    return x.indices[told[0]], (x.buffer, rest, x.dtype)


def _fit(planes: Sequence[_Plane], c: Computation) -> bool:
    """Whether a record of an element of each is one access, and stays as it is while rows are folded."""
    dtypes, extents = {p[2] for p in planes}, {_extent(p, c) for p in planes}
    if len(planes) < 2 or len(dtypes) != 1 or len(extents) != 1 or any(p[0].startswith(("_", KEPT)) for p in planes):
        return False
    beside = all(p[1][-1] is not None for p in planes) and len({p[:1] + p[1][:-1] for p in planes}) == 1
    written = {s.target for s in c.statements}
    small = _width(planes) * BY_DTYPE[planes[0][2]].bytes <= _MOST_BYTES
    return small and not beside and not any(p[0] in written for p in planes)


def _width(planes: Sequence[_Plane]) -> int:
    """Elements of a record: a power of two."""
    return 1 << (len(planes) - 1).bit_length()


def _extent(plane: _Plane, c: Computation) -> str:
    return c.buffer(plane[0]).shape[plane[1].index(None)]


def _buffer(planes: Sequence[_Plane], name: str, c: Computation) -> Buffer:
    return Buffer(name, planes[0][2], (_extent(planes[0], c), str(_width(planes))))


def _laid(planes: Sequence[_Plane], name: str, c: Computation) -> Iterator[Statement]:
    """The statements that put elements side by side; what a record has beyond them is nought."""
    (dim, here), dtype = (DIMS[0], Number(affine(DIMS[0]), "int64")), planes[0][2]
    for n in range(_width(planes)):
        value: Expr = Const(0.0 if dtype.startswith(("float", "bfloat")) else 0, dtype)
        if n < len(planes):
            buffer, rest, _ = planes[n]
            value = Load(buffer, tuple(here if i is None else i for i in rest), dtype)
        place = (here, Number(Affine((), n), "int64"))
        yield Statement("map", name, ((dim, _extent(planes[0], c)),), value, place)


def _from_records(e: Expr, of: Mapping[Expr, tuple[str, list[_Plane]]]) -> Expr:
    if isinstance(e, Load) and (found := _plane(e)) and found[0] in of:
        name, planes = of[found[0]]
        return Load(name, (found[0], Number(Affine((), planes.index(found[1])), "int64")), e.dtype)
    return rebuilt(e, tuple(_from_records(part, of) for part in children(e)))
