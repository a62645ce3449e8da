"""Local vectors and short local arrays as a variable an element: ``float2 sum`` as ``sum_x`` and ``sum_y``, so that
what is said of a variable (that a loop only adds to it) can be said of each element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.polynomial import polynomial
from fsr.hardware.c_types import LANES
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
    Stmt,
    Unary,
    number,
)
from fsr.source.mapping import map_stmts, rewrite, substitute
from fsr.source.parse import parse_kernels
from fsr.source.walk import (
    Block,
    base_name,
    declared,
    fresh,
    integer,
    names_changed,
    names_in,
    nodes,
    opaque_names,
    variables,
    walk_exprs,
    walk_stmts,
)

LONGEST = 16  # elements of an array, and turns of a loop over one
_PAIRS = ("__", "half", "nv_")  # of 16-bit numbers: registers of their own

Parts = dict[str, str]  # what stands in brackets or after the dot, to the variable for it


def apart(body: Block, taken: Iterable[str], constants: Mapping[str, int]) -> Block:
    """The statements with those local vectors and arrays apart of which every mention tells the elements; loops over
    an array's elements are written out for it. ``taken``: names not to use; ``constants``: what macros stand for."""
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(body)):
        return body
    found = _vectors(body, set(taken))
    written_out = _written_out(found, constants)
    arrays = _arrays(written_out, set(taken) | set(declared(written_out)))
    return found if arrays == written_out else arrays


# ---------------------------------------------------------------- vectors


def _vectors(body: Block, taken: set[str]) -> Block:
    targets = [s.target.base for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Member)]
    for s in _declared_once(body):
        if Name(s.name) in targets and s.type in LANES and not (s.dims or s.type.startswith(_PAIRS)):
            element, count = LANES[s.type]
            parts = _named(s.name, "xyzw"[:count], taken)
            whole = fresh(f"{s.name}_whole", taken)
            taken.add(whole)
            new = map_stmts(body, _VectorParts(s.name, s.type, element.spelling, parts, whole).statement)
            body = new if s.name not in _left(new) else body
    return body


@dataclass(frozen=True)
class _VectorParts:
    """A vector's statements with its components in its place. ``element``: their type; ``whole``: a name for a value
    that is there as a vector only."""

    name: str
    type: str
    element: str
    parts: Parts
    whole: str

    def statement(self, s: Stmt) -> Stmt | Block:
        """The statement, or several, without the vector where that can be; as it is elsewhere."""
        match s:
            case Declare(name=name) if name == self.name:
                return self._declared(s)
            case Assign(target=Name(text=text), op="=", value=value) if text == self.name:
                return self._set(rewrite(value, self._component))
            case Assign(value=Name(text=text)) if text == self.name:
                s = replace(s, value=self._together())
            case Declare(init=Name(text=text)) if text == self.name:
                s = replace(s, init=self._together())
        return rewrite(s, self._component)

    def _component(self, e: Expr) -> Expr | None:
        match e:
            case Member(base=Name(text=text), name=name, arrow=False) if text == self.name and name in self.parts:
                return Name(self.parts[name])
        return None

    def _together(self) -> Expr:
        return Call(Name(f"make_{self.type}"), tuple(Name(part) for part in self.parts.values()))

    def _declared(self, s: Declare) -> Block:
        if s.init is None:
            return tuple(Declare(self.element, part) for part in self.parts.values())
        values = self._listed(s.init)
        if values is not None:
            return tuple(Declare(self.element, p, v) for p, v in zip(self.parts.values(), values, strict=True))
        parts = (Declare(self.element, part, Member(Name(self.whole), at)) for at, part in self.parts.items())
        return (Declare(f"const {self.type}", self.whole, s.init), *parts)

    def _set(self, value: Expr) -> Stmt | Block:
        values = self._listed(value)
        if values is not None and not any(names_in(v) & set(self.parts.values()) for v in values[1:]):
            return tuple(Assign(Name(p), "=", v) for p, v in zip(self.parts.values(), values, strict=True))
        parts = (Assign(Name(part), "=", Member(Name(self.whole), at)) for at, part in self.parts.items())
        return Scope((Declare(f"const {self.type}", self.whole, value), *parts))

    def _listed(self, value: Expr) -> tuple[Expr, ...] | None:
        match value:
            case Call(callee=Name(text=text), args=args) if text == f"make_{self.type}":
                return args if len(args) == len(self.parts) else None
            case OpaqueExpr(text=text):
                return _braced(text, len(self.parts))
        return None


# ---------------------------------------------------------------- arrays


def _arrays(body: Block, taken: set[str]) -> Block:
    """The statements with each array in parts of which numbers alone tell the elements, all of them at once: what is
    written out is long."""
    every, told = _mentions(body)
    elements, own = dict[Expr, Expr](), dict[Declare, list[Declare]]()
    for s in _declared_once(body):
        length = integer(s.dims[0]) if len(s.dims) == 1 else None
        if length is None or not 0 < length <= LONGEST:
            continue
        values = _first_values(s, length)
        if values is None or every[s.name] > sum(told[s.name, str(i)] for i in range(length)):
            continue
        parts = _named(s.name, map(str, range(length)), taken)
        own[s] = [Declare(s.type, part, value) for part, value in zip(parts.values(), values, strict=True)]
        elements |= {Index(Name(s.name), Literal(i)): Name(part) for i, part in parts.items()}
    if not own:
        return body
    return rewrite(map_stmts(body, lambda s: own.get(s, s) if isinstance(s, Declare) else s), elements.get)


def _mentions(body: Block) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How often each name is mentioned, in verbatim text too, and how often a number tells which element of it."""
    every, told = Counter[str](), Counter[tuple[str, str]]()
    for e in walk_exprs(body):
        match e:
            case Name(text=text):
                every[text] += 1
            case Index(base=Name(text=text), index=Literal(text=at)):
                told[text, at] += 1
            case OpaqueExpr(text=text):
                every.update(opaque_names(text))
    return every, told


def _first_values(s: Declare, count: int) -> tuple[Expr | None, ...] | None:
    """What an array's elements are declared as; None where that cannot be read."""
    if s.init is None:
        return (None,) * count
    return _braced(s.init.text, count) if isinstance(s.init, OpaqueExpr) else None


def _written_out(body: Block, constants: Mapping[str, int]) -> Block:
    """The statements with a turn after the other of the short loops that count through a local array."""
    arrays = {s.name for s in walk_stmts(body) if isinstance(s, Declare) and s.dims and not s.qualifiers}

    def change(s: Stmt) -> Stmt | Block:
        if not isinstance(s, For):
            return s
        turns = _turns(s, constants)
        over = {names_in(e.index) for e in walk_exprs(s.body) if isinstance(e, Index) and names_in(e.base) & arrays}
        ends_early = any(isinstance(x, Jump) for x in walk_stmts(s.body))
        if turns is None or not any(s.var in names for names in over) or ends_early or s.var in names_changed(s.body):
            return s
        own = any(isinstance(x, Declare) for x in s.body)
        copies = [_folded(substitute(s.body, {s.var: number(turn)})) for turn in turns]
        return tuple(Scope(copy) for copy in copies) if own else tuple(x for copy in copies for x in copy)

    return map_stmts(_sized(body, constants), change)


def _sized(body: Block, constants: Mapping[str, int]) -> Block:
    """The statements with the extents of arrays as numbers."""

    def change(s: Stmt) -> Stmt:
        match s:
            case Declare(dims=(Name(text=text),)) if text in constants:
                return replace(s, dims=(number(constants[text]),))
        return s

    return map_stmts(body, change)


def _turns(loop: For, constants: Mapping[str, int]) -> range | None:
    """The values of a loop variable of its own; None where they are not known, or too many."""
    ends = [constants.get(e.text) if isinstance(e, Name) else integer(e) for e in (loop.start, loop.bound, loop.step)]
    if loop.type is None or None in ends or loop.relation not in ("<", "<=") or (ends[2] or 0) <= 0:
        return None
    found = range(ends[0] or 0, (ends[1] or 0) + (loop.relation == "<="), ends[2] or 1)
    return found if len(found) <= LONGEST else None


def _folded(body: Block) -> Block:
    """The statements with sums of numbers in brackets, ``a[0 + 1]``, as numbers."""

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Index) and isinstance(e.base, Name) and (value := polynomial(e.index, {}).value) is not None:
            return Index(e.base, number(value))
        return None

    return rewrite(body, change)


# ---------------------------------------------------------------- both


def _declared_once(body: Block) -> list[Declare]:
    """The plain declarations of names that stand for nothing else, of which no address is taken."""
    every = variables(body)
    pointed = {base_name(e) for e in walk_exprs(body) if isinstance(e, Unary) and e.op == "&"}
    own = [s for s in walk_stmts(body) if isinstance(s, Declare) and not s.qualifiers]
    return [s for s in own if every.count(s.name) == 1 and s.name not in pointed]


def _named(name: str, ends: Iterable[str], taken: set[str]) -> Parts:
    parts = Parts()
    for end in ends:
        parts[end] = fresh(f"{name}_{end}", taken)
        taken.add(parts[end])
    return parts


def _left(body: Block) -> frozenset[str]:
    """The names still mentioned, in verbatim text too."""
    found = {n for e in walk_exprs(body) if isinstance(e, OpaqueExpr) for n in opaque_names(e.text)}
    return frozenset(found | {n for e in walk_exprs(body) for n in names_in(e)} | set(declared(body)))


def _braced(text: str, count: int) -> tuple[Expr, ...] | None:
    """The values of ``{a, b}``, zeros for those that are left out; None where it is no plain list."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    inner = text[1:-1].strip().rstrip(",")
    read = parse_kernels(f"__global__ void listed() {{ listed({inner}); }}") if inner else {}
    values: tuple[Expr, ...] = ()
    for kernel in read.values():
        match kernel.body:
            case (ExprStmt(Call(args=values)),):
                pass
            case _:
                return None
    if len(values) > count or any(isinstance(e, OpaqueExpr) for v in values for e in nodes(v)):
        return None
    return (*values, *[Literal("0")] * (count - len(values)))
