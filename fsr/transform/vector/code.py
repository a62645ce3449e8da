"""Scalar code over neighbouring elements as code over packs of them: what vectorising one id and one loop share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from fsr.analysis.accesses import Access, accesses_in
from fsr.analysis.definitions import Definitions
from fsr.analysis.polynomial import Poly
from fsr.analysis.types import bare, resolved
from fsr.hardware.c_types import element_bytes
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Member,
    Name,
    Stmt,
    Unary,
    conjunction,
    number,
)  # fmt: skip
from fsr.source.mapping import map_expr, map_exprs, substitute
from fsr.source.walk import base_name, fresh, names_in, names_written, walk_stmts
from fsr.transform.target import Target

MAX_BYTES = 16  # the widest access of a thread
KINDS = frozenset(["read", "write", "update"])


@dataclass(frozen=True)
class Stream:
    """Accesses to an array, all at one index, that go through it element by element. ``spelled``: that index as it is
    written; ``index``: with the walking variable left in it; ``reads``/``writes``: what happens to its elements."""

    array: str
    spelled: frozenset[Expr]
    element: str
    bytes: int
    index: Expr
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Streams:
    """What a piece of code over consecutive values of ``variable`` touches. ``walked``: arrays with factor 1 in
    the variable; everything else it reads does not depend on the order and is left as it is."""

    variable: str
    walked: tuple[Stream, ...]

    def width_fits(self, width: int) -> bool:
        """Whether packs of that many elements are at most 16 bytes for every array."""
        return all(s.bytes * width <= MAX_BYTES for s in self.walked)


def streams(
    target: Target,
    body: tuple[Stmt, ...],
    variable: str,
    invariant_in: tuple[Stmt, ...],
    bound: Expr | None = None,
) -> Streams | None:
    """The arrays walked by the variable; None when some access could not be kept in order.

    Arrays that are written must be walked; arrays may not alias. ``invariant_in``: the statements within which
    the rest of an index must not change. ``bound``: what the variable, which begins at 0, stays below; planes of an
    array that lie so far apart, or a multiple of it, have no element in common.
    """
    if target.aliasing:
        return None
    pointers = frozenset(p.name for p in target.kernel.params if p.is_pointer)
    pointers |= {s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and s.type.endswith("*")}
    found = accesses_in(body, pointers | target.known.shared)
    by_array = dict[str, list[Access]]()
    for access in found:
        if access.array is None:
            return None
        by_array.setdefault(access.array, []).append(access)
    moved = {s.target.text for s in walk_stmts(invariant_in) if isinstance(s, Assign) and isinstance(s.target, Name)}
    if moved & set(by_array) or not _apart(target, by_array):
        return None
    known = replace(target.known, values={n: e for n, e in target.known.values.items() if n != variable})
    varying = names_written(invariant_in) | {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    walked = list[Stream]()
    for array, uses in by_array.items():
        planes = _planes(target, known, uses)
        found_here = [_stream(target, known, array, own, variable, varying) for own in planes.values()]
        if any(a.writes for a in uses) and (None in found_here or not _disjoint(target, known, list(planes), bound)):
            return None
        walked += [one for one in found_here if one is not None]
    return Streams(variable, tuple(walked)) if walked else None


def _planes(target: Target, known: Definitions, uses: list[Access]) -> dict[Poly | None, list[Access]]:
    """Accesses by their index."""
    planes = dict[Poly | None, list[Access]]()
    for use in uses:
        index = None if use.index is None else known.poly(use.index, target.constants)
        planes.setdefault(index, []).append(use)
    return planes


def _disjoint(target: Target, known: Definitions, indices: list[Poly | None], bound: Expr | None) -> bool:
    """Whether packs at these indices have no element in common, wherever there is a whole pack."""
    if len(indices) == 1:
        return True
    if bound is None or None in indices:
        return False
    extent = known.poly(bound, target.constants)
    told = [one for one in indices if one is not None]
    apart = [(a - b).over(extent) for a, b in combinations(told, 2)]
    return all(times is not None and times.value not in (None, 0) for times in apart)


def _apart(target: Target, by_array: Mapping[str, list[Access]]) -> bool:
    """Whether what is written through one name is touched through no other."""
    origins = {array: origin_of(target, array) for array in by_array}
    for array, uses in by_array.items():
        if not any(a.writes for a in uses):
            continue
        if origins[array] is None or list(origins.values()).count(origins[array]) > 1 or None in origins.values():
            return False
    return True


def origin_of(target: Target, array: str) -> str | None:
    """The parameter or shared array that a pointer points into."""
    if array in target.known.shared or any(p.name == array for p in target.kernel.params):
        return array
    value = target.known.values.get(array)
    name = None if value is None else base_name(target.known.expand(value))
    return name if any(p.name == name for p in target.kernel.params) else None


def _stream(
    target: Target,
    known: Definitions,
    array: str,
    uses: list[Access],
    variable: str,
    varying: frozenset[str],
) -> Stream | None:
    index, declared = uses[0].index, target.known.types.get(array, "")
    if index is None or array in target.known.shared or "volatile" in declared:
        return None
    if any(a.kind not in KINDS for a in uses):
        return None
    at = known.poly(index, target.constants)
    factor = at.coefficient(variable)
    if factor is None or factor.value != 1 or at.depends_on(varying - {variable}):
        return None
    if all(a.tests for a in uses) or any(a.writes and (a.tests or a.loops) for a in uses):
        return None  # a pack must not touch what the scalar code leaves alone
    element = bare(declared)
    size = element_bytes(resolved(element, target.aliases))
    if size is None or all(a.loops for a in uses):
        return None
    reads = any(a.kind != "write" for a in uses)
    spelled = frozenset(a.index for a in uses if a.index is not None)
    return Stream(array, spelled, element, size, _outside(known, index, varying), reads, any(a.writes for a in uses))


def _outside(known: Definitions, index: Expr, varying: frozenset[str]) -> Expr:
    """The index in names that are known before the body runs. What the body declares is put in its place as the type
    that it has there: ``int up = max(y - 1, 0)`` would be another number over the unsigned ids that y is made of."""
    while own := names_in(index) & varying & known.values.keys():
        index = substitute(index, {name: _typed(known, name) for name in own})
    return index


def _typed(known: Definitions, name: str) -> Expr:
    value, type_ = known.values[name], bare(known.types.get(name, ""))
    return value if isinstance(value, Name | Literal) or type_ in ("", "auto") else Cast(type_, value)


@dataclass(frozen=True)
class Packed:
    """Vector code: ``before`` loads the packs, ``body`` is the unrolled loop over their elements, ``after`` stores
    them; ``aligned``: the run-time test that packs may be used at all (None: it is promised)."""

    before: tuple[Stmt, ...]
    body: For
    after: tuple[Stmt, ...]
    aligned: Expr | None


def packed(
    target: Target, found: Streams, body: tuple[Stmt, ...], width: int, base: Expr, multiple: str = ""
) -> Packed:
    """The body done for ``width`` values of the variable from ``base`` (an expression without side effects).

    ``multiple``: a name in ``base`` that is known to be a multiple of the width. The pack types are
    ``fsr_pack<element, width>``; indices have the variable replaced by ``base``.
    """
    taken = set(target.names)
    lane = fresh("v", taken)
    packs = dict[tuple[str, Expr], str]()
    before, after = list[Stmt](), list[Stmt]()
    for s in found.walked:
        name = fresh(f"{s.array}_v", taken)
        taken.add(name)
        packs |= {(s.array, index): name for index in s.spelled}
        type_ = f"fsr_pack<{s.element}, {width}>"
        address = _address(s.array, _at(s.index, found.variable, base))
        loaded = Unary("*", Cast(f"const {type_} *", address, "reinterpret_cast"))
        before.append(Declare(type_, name, loaded if s.reads else None))
        if s.writes:
            after.append(Assign(Unary("*", Cast(f"{type_} *", address, "reinterpret_cast")), "=", Name(name)))
    inner = _on_packs(body, packs, lane)
    inner = substitute(inner, {found.variable: _plus(base, Name(lane))})
    loop = For("int", lane, Literal("0"), "<", number(width), Literal("1"), inner, ("#pragma unroll",))
    aligned = _aligned(target, found, width, base, multiple)
    return Packed(tuple(before), loop, tuple(after), aligned)


def _plus(a: Expr, b: Expr) -> Expr:
    return b if a == Literal("0") else Binary("+", a, b)


def _at(index: Expr, variable: str, base: Expr) -> Expr:
    return without_zero(substitute(index, {variable: base}))


def without_zero(e: Expr) -> Expr:
    """The expression without additions of a literal 0."""

    def change(x: Expr) -> Expr:
        match x:
            case Binary("+", left, Literal("0")):
                return left
            case Binary("+", Literal("0"), right):
                return right
        return x

    return map_expr(e, change)


def _address(array: str, offset: Expr) -> Expr:
    """``array + a + b`` for the offset a + b."""
    if offset == Literal("0"):
        return Name(array)
    if isinstance(offset, Binary) and offset.op == "+":
        return Binary("+", _address(array, offset.left), offset.right)
    return Binary("+", Name(array), offset)


def _on_packs(body: tuple[Stmt, ...], packs: Mapping[tuple[str, Expr], str], lane: str) -> tuple[Stmt, ...]:
    def change(e: Expr) -> Expr:
        match e:
            case Call(Name("__ldg" | "__ldcs" | "__ldcg" | "__ldca"), (Unary("&", inner),)) if _is_pack(inner, packs):
                return inner
            case Index(Name(text), index) | Unary("*", Binary("+", Name(text), index)) if (text, index) in packs:
                return Index(Member(Name(packs[text, index]), "v"), Name(lane))
        return e

    return map_exprs(body, change)


def _is_pack(e: Expr, packs: Mapping[tuple[str, Expr], str]) -> bool:
    match e:
        case Index(Member(Name(text), "v"), _):
            return text in packs.values()
    return False


def _aligned(target: Target, found: Streams, width: int, base: Expr, multiple: str) -> Expr | None:
    """The run-time test of every address whose alignment nothing promises."""
    tests = list[Expr]()
    for s in found.walked:
        size = s.bytes * width
        offset = _at(s.index, found.variable, base)
        if target.alignment(s.array) % size == 0 and _is_multiple(target, offset, width, multiple):
            continue
        address: Expr = Name(s.array)  # the offset is a multiple, so the array's own alignment decides
        if not _is_multiple(target, offset, width, multiple):
            address = _address(s.array, offset)
        tests.append(Call(Name("fsr_aligned"), (address,), (str(size),)))
    return conjunction(tests)


def _is_multiple(target: Target, offset: Expr, width: int, multiple: str) -> bool:
    """Whether an index is a multiple of the width whatever its symbols are, but for ``multiple``, which is one."""
    poly = target.poly(offset)
    return all(factor % width == 0 for terms, factor in poly.terms if terms != (multiple,))
