"""The arguments of an inferred kernel: what scalars hold, and the shapes and roles that accesses give buffers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.ranges import Reach
from fsr.analysis.shapes import shape_of
from fsr.contract.host import passed_number
from fsr.contract.infer.finding import Finding
from fsr.contract.model import Argument, Constraints
from fsr.expressions import names
from fsr.records import Role
from fsr.source.emit import emit_kernel
from fsr.source.entry import function_name
from fsr.source.form import KernelForm
from fsr.source.launches import HostLaunch
from fsr.source.signature import Parameter

_MOST_FACTORS = 4


def argument(found: Finding, param: Parameter) -> Argument | None:
    """The argument when it is clear; otherwise None, with the open point noted."""
    if param.dtype is None or (param.lanes > 1 and not param.pointer):
        found.open[f"args.{param.name}"] = f"the type {param.type!r} is none that values can be made of"
        return None
    if not param.pointer:
        return _scalar(found, param)
    assert found.walk is not None
    if param.name in found.walk.unclear:
        found.open[f"args.{param.name}"] = found.walk.unclear[param.name]
        return None
    accesses = [a for a in found.walk.accesses if a.buffer == param.name]
    if not accesses:
        found.open[f"args.{param.name}"] = "the kernel does not use it in a way that is understood"
        return None
    shape = _common_shape(found, param, accesses)
    if shape is None:
        return None
    extents = tuple(_as_written(p.text(), found.form) for p in shape)
    if param.lanes > 1:  # of a float4 the contract counts the elements
        extents = (*extents, str(param.lanes))
    alignment = param.alignment
    return Argument(param.name, param.dtype, _role(found, param, accesses, shape), extents, None, alignment)


def _as_written(extent: str, form: KernelForm) -> str:
    """A product of names in the order in which the kernel has it: the outermost dimension stands first there."""
    factors = extent.split(" * ")
    if not 2 <= len(factors) <= _MOST_FACTORS or not all(map(str.isidentifier, factors)):
        return extent
    source, ways = emit_kernel(form), itertools.permutations(factors)
    return next((" * ".join(w) for w in ways if re.search(r"\b" + r"\s*\*\s*".join(w) + r"\b", source)), extent)


def _scalar(found: Finding, param: Parameter) -> Argument | None:
    assert found.walk is not None
    dtype = param.dtype or ""
    literal = _launched_literal(found, param)
    if literal is not None and "int" in dtype:
        return Argument(param.name, dtype, Role.SCALAR, value=literal)
    if literal is not None and float(literal) != 0:  # around what is passed: it is a parameter, so it may vary
        ends = sorted((float(literal) / 2, float(literal) * 2))
        limits = Constraints(low=repr(ends[0]), high=repr(ends[1]))
        return Argument(param.name, dtype, Role.SCALAR, constraints=limits)
    if "int" not in dtype:
        return Argument(param.name, dtype, Role.SCALAR)
    if param.name in _size_names(found):
        return Argument(param.name, dtype, Role.SCALAR, value=param.name)
    number = _passed_number(found, param)
    if number is not None:
        return Argument(param.name, dtype, Role.SCALAR, value=number)
    found.open[f"args.{param.name}"] = "no guard or loop ends at it: what does it hold?"
    return None


def _launches(found: Finding) -> Sequence[HostLaunch]:
    bare = function_name(found.signature.kernel)
    return [h for h in found.file.launches if function_name(h.entry) == bare]


def _passed_number(found: Finding, param: Parameter) -> str | None:
    """The number that every launch in the file passes for a scalar, by way of variables."""
    at = found.signature.params.index(param)
    given = {passed_number(host, found.file, at) for host in _launches(found)}
    return given.pop() if len(given) == 1 else None


def _launched_literal(found: Finding, param: Parameter) -> str | None:
    """The number that every launch in the file passes for a scalar."""
    at = found.signature.params.index(param)
    given = {h.args[at] if at < len(h.args) else "" for h in _launches(found)}
    if len(given) != 1:
        return None
    match = re.fullmatch(r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFuUlL]*", given.pop())
    if match is None:
        return None
    return match[1] if "int" in (param.dtype or "") and match[1].lstrip("-").isdigit() else repr(float(match[1]))


def _size_names(found: Finding) -> set[str]:
    """Scalars that a range ends at or the launch is made of."""
    assert found.walk is not None
    known = {a for poly in found.walk.guards.values() for a in poly.symbols}
    for access in found.walk.accesses:
        known |= {a for poly in access.bounds.values() for a in poly.symbols}
    if found.launch is not None:
        known |= {n for text in found.launch.shape for n in names(text)}
    return {n for n in known if n[0] not in "@?%"}


def _common_shape(found: Finding, param: Parameter, accesses: Sequence[Reach]) -> tuple[Poly, ...] | None:
    """The one shape that all accesses fit, outermost first; None with the open point noted."""
    shapes: list[tuple[Poly, ...]] = []
    key = f"args.{param.name}"
    for access in accesses:
        shape = shape_of(access, found.bounds)
        if isinstance(shape, str):
            found.open[key] = shape
            return None
        if shape not in shapes:
            shapes.append(shape)
    general = _largest([s for s in shapes if s != (constant(1),)])
    if len(general) > 1:
        texts = " and ".join("[" + ", ".join(p.text() for p in s) + "]" for s in general)
        found.open[key] = f"its indices fit different shapes: {texts}"
        return None
    shape = general[0] if general else shapes[0]
    for access in accesses:
        _note_nonempty(found, access, shape)
    return shape


def _largest(shapes: list[tuple[Poly, ...]]) -> list[tuple[Poly, ...]]:
    """Of shapes whose outermost extents differ by a number, as neighbours' do, the largest; all where more differs."""
    if len({s[1:] for s in shapes}) != 1:
        return shapes
    more = [(s[0] - shapes[0][0]).value for s in shapes]
    return shapes if None in more else [max(shapes, key=lambda s: (s[0] - shapes[0][0]).value or 0)]


def _note_nonempty(found: Finding, access: Reach, shape: tuple[Poly, ...]) -> None:
    """Extents that a fixed index needs to be at least 1: cols for ``x[row * cols]`` outside any loop over cols."""
    moving = [a for a in access.index.symbols if a[0] in "@?%"]
    if len(moving) < len(shape):
        fixed = [e for e in shape if e.single and all(access.bounds.get(a, found.bounds.get(a)) != e for a in moving)]
        found.nonempty |= {e.single for e in fixed if e.single}


def _role(found: Finding, param: Parameter, accesses: Sequence[Reach], shape: tuple[Poly, ...]) -> Role:
    """in when never written; out when written everywhere before anything is read; inout otherwise."""
    kinds = {a.kind for a in accesses}
    if param.const or kinds == {"read"}:
        return Role.IN
    _note_sums(found, accesses)
    if kinds == {"write"} and any(_covers(found, a, shape) for a in accesses):
        return Role.OUT
    return Role.INOUT


def _note_sums(found: Finding, accesses: Sequence[Reach]) -> None:
    """Ranges that are run over but do not appear in the index written: the length of a sum."""
    assert found.walk is not None
    for access in found.walk.accesses:
        if access.kind == "read":
            inner = [a for a in access.index.symbols if a.startswith("@") and a[1:2] not in "gbt"]
            for atom in inner:
                end = access.bounds.get(atom)
                if end is not None and end.single and all(atom not in w.index.symbols for w in accesses):
                    found.summed.add(end.single)
    for access in accesses:
        if access.kind == "update" and access.index.value is not None:
            ends = {p.text() for a, p in access.bounds.items() if a.startswith("@g")}
            found.summed |= ends if len(ends) == 1 else set()


def _covers(found: Finding, access: Reach, shape: tuple[Poly, ...]) -> bool:
    """Whether a write, over all threads, reaches every element of the shape."""
    if not access.total or shape_of(access, found.bounds) != shape:
        return False
    missing = [a for a in access.bounds if a.startswith("@t") and access.bounds[a].value != 1]
    return not missing
