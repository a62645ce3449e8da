"""What an index expression is worth: polynomials over thread indices, loop variables and sizes, with ranges.

Whatever is not understood becomes an unknown: a fresh atom without a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from fsr.analysis.conditions import MIRRORED, NEGATED
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Member, Name, Unary
from fsr.source.walk import integer

Kind = OneOf["read", "write", "update"]
AXES = ("x", "y", "z")
_BUILTINS = {"threadIdx": "t", "blockIdx": "b", "blockDim": "B", "gridDim": "G"}


@dataclass(frozen=True)
class Reach:
    """Which elements of a buffer an access reaches. ``bounds``: exclusive upper ends of the symbols in ``index`` there.

    ``total``: the access happens for every value of its atoms within their bounds (only size guards stand
    around it), which makes a write cover them all.
    """

    buffer: str
    kind: Kind
    index: Poly
    bounds: Mapping[str, Poly]
    total: bool


@dataclass
class Walk:
    """What the walk over one kernel found.

    ``unclear``: buffers used in ways that are not understood, with the reason. ``guards``: atoms that a size
    guard bounds. ``by_reference``: as a KernelForm's.
    """

    params: Mapping[str, bool]  # name → is a pointer
    constants: Mapping[str, int]
    block: Mapping[str, int]  # axis → blockDim, where the launch tells
    by_reference: frozenset[str] = frozenset()
    accesses: list[Reach] = field(default_factory=list)
    unclear: dict[str, str] = field(default_factory=dict)
    guards: dict[str, Poly] = field(default_factory=dict)
    sums: dict[Poly, str] = field(default_factory=dict)  # of indices, as x + dx, that a guard bounds: each an atom
    _fresh: int = 0

    def unknown(self, hint: str = "?") -> Poly:
        """A fresh atom that has no range."""
        self._fresh += 1
        return symbol(f"?{hint}{self._fresh}")

    def sum_of(self, whole: Poly) -> str:
        """The atom of a sum of indices that a guard bounds: what it is made of no longer matters where it holds."""
        if whole not in self.sums:
            self._fresh += 1
            self.sums[whole] = f"@_sum{self._fresh}"
        return self.sums[whole]

    def doubt(self, names: frozenset[str] | set[str], reason: str) -> None:
        """Record buffers that are used in a way that is not understood."""
        for name in names:
            if self.params.get(name):
                self.unclear.setdefault(name, reason)


@dataclass(frozen=True)
class State:
    """What is known at a point: variables' values, local pointers, ranges of atoms."""

    values: Mapping[str, Poly]
    pointers: Mapping[str, tuple[str, Poly]]
    bounds: Mapping[str, Poly]
    total: bool = True

    def without(self, names: frozenset[str], walk: Walk) -> State:
        """The state after something may have changed these variables."""
        values = {n: walk.unknown(n) if n in names else v for n, v in self.values.items()}
        pointers = {n: v if n not in names else (v[0], walk.unknown(n)) for n, v in self.pointers.items()}
        return State(values, pointers, self.bounds, self.total)


def assume(test: Expr, holds: bool, state: State, walk: Walk) -> State:
    """The state where ``test`` holds, or does not: size guards become ranges, anything else makes it partial."""
    bounds, total = dict(state.bounds), state.total
    for part, positive in _conjuncts(test, holds):
        if part is not None and asks_for_buffer(part, state) == positive:
            continue
        found = _upper(part, positive, state, walk) if part is not None else None
        if found is None:
            total = False
            continue
        atom, end = found
        bounds[atom] = end
        walk.guards.setdefault(atom, end)
    return State(state.values, state.pointers, bounds, total)


def asks_for_buffer(test: Expr, state: State) -> bool | None:
    """Whether a test holds that asks if there is a buffer, ``if (bias)``: there is one for every pointer of a contract.
    None for what asks for anything else."""
    match test:
        case Unary("!", operand):
            found = asks_for_buffer(operand, state)
            return None if found is None else not found
        case Binary("==" | "!=" as op, Name(text), Name("nullptr" | "NULL") | Literal("nullptr" | "NULL" | "0")) if (
            text in state.pointers
        ):
            return op == "!="
        case Name(text) if text in state.pointers:
            return True
    return None


def _conjuncts(test: Expr, holds: bool) -> Iterator[tuple[Expr | None, bool]]:
    """The parts that all hold; None for a part that says less (one side of an or)."""
    match test:
        case Unary("!", operand):
            yield from _conjuncts(operand, not holds)
        case Binary(op, left, right) if op == ("&&" if holds else "||"):
            yield from _conjuncts(left, holds)
            yield from _conjuncts(right, holds)
        case Binary("&&" | "||"):
            yield None, holds
        case _:
            yield test, holds


def _upper(test: Expr, holds: bool, state: State, walk: Walk) -> tuple[str, Poly] | None:
    """(atom, exclusive end) of a comparison such as ``i < n``; None for anything else."""
    if not isinstance(test, Binary) or test.op not in NEGATED:
        return None
    op = test.op if holds else NEGATED[test.op]
    left, right = value_of(test.left, state, walk), value_of(test.right, state, walk)
    if not any(map(_is_index, left.symbols)):
        left, right, op = right, left, MIRRORED[op]
    if not any(map(_is_index, left.symbols)) or not all(is_size(a, walk) for a in right.symbols):
        return None
    if left.single is None and (op not in ("<", "<=") or right.value is not None):
        return None
    atom = left.single or walk.sum_of(left)
    if op == "<":
        return atom, right
    if op == "<=":
        return atom, right + constant(1)
    if op == "==" and right.value == 0:
        return atom, constant(1)
    return None


def with_sums(index: Poly, state: State, walk: Walk) -> Poly:
    """The index with the sums that are bounded here each as one atom."""
    for whole, atom in walk.sums.items():
        if atom in state.bounds:
            index = index.replace(whole, symbol(atom))
    return index


def _is_index(atom: str) -> bool:
    """Thread indices and their parts, and loop variables; never sizes."""
    return atom[0] in "@?%"


def is_size(atom: str, walk: Walk) -> bool:
    return atom in walk.params and not walk.params[atom]


def sweeps(start: Poly, step: Poly, bounds: Mapping[str, Poly], walk: Walk) -> bool:
    """Whether the loop, over all threads, takes every value from 0 up: 0 and 1, or an index and the number of
    threads it runs over."""
    if start.value == 0 and step.value == 1:
        return True
    atom = start.single
    if atom is None:
        return False
    for axis in AXES:
        if atom == f"@t{axis}" and step == _extent(axis, walk):
            return True
        if atom == f"@b{axis}" and step.single == f"@G{axis}":
            return True
        if atom == f"@g{axis}" and step == _extent(axis, walk) * symbol(f"@G{axis}"):
            return True
    return atom in bounds and atom.startswith("%") and bounds[atom] == step


def pointer_of(expr: Expr, state: State, walk: Walk) -> tuple[str, Poly] | None:
    """(buffer, offset) of a pointer expression; None when it is none that is understood."""
    match expr:
        case Name(text):
            return state.pointers.get(text)
        case Unary("&", Index(base, index)) | Binary("+", base, index):
            inner = pointer_of(base, state, walk)
            if inner is None:
                return None
            return inner[0], global_indices(inner[1] + value_of(index, state, walk), walk)
    return None


def value_of(expr: Expr, state: State, walk: Walk) -> Poly:
    """An integer expression as a polynomial; unknown atoms for what is not understood."""
    match expr:
        case Literal():
            number = integer(expr)
            return walk.unknown() if number is None else constant(number)
        case Name(text):
            if text in state.values:
                return state.values[text]
            return constant(walk.constants[text]) if text in walk.constants else walk.unknown(text)
        case Member(Name(builtin), axis) if builtin in _BUILTINS and axis in AXES:
            if builtin == "blockDim" and axis in walk.block:
                return constant(walk.block[axis])
            return symbol(f"@{_BUILTINS[builtin]}{axis}")
        case Cast(_, operand):
            return value_of(operand, state, walk)
        case Unary("-", operand):
            return -value_of(operand, state, walk)
        case Unary("+", operand):
            return value_of(operand, state, walk)
        case Call(Name(name), (one,)) if name in ("int", "size_t", "unsigned", "int64_t", "uint32_t", "long"):
            return value_of(one, state, walk)
        case Binary(op, left, right):
            return _binary(op, value_of(left, state, walk), value_of(right, state, walk), state, walk)
    return walk.unknown()


def _binary(op: str, left: Poly, right: Poly, state: State, walk: Walk) -> Poly:
    if op == "+":
        return global_indices(left + right, walk)
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if left.value is not None and right.value:
        value = {"/": left.value // right.value, "%": left.value % right.value,
                 ">>": left.value >> right.value, "<<": left.value << right.value}.get(op)  # fmt: skip
        return walk.unknown() if value is None else constant(value)
    if op == "<<" and right.value is not None:
        return left * constant(1 << right.value)
    if op == "&" and right.value is not None and right.value & (right.value + 1) == 0:
        op, right = "%", right + constant(1)
    if op == ">>" and right.value is not None:
        op, right = "/", constant(1 << right.value)
    if op in ("/", "%") and left.single is not None and _is_index(left.single):
        return _part(op, left.single, right, state, walk)
    return walk.unknown()


def _part(op: str, atom: str, divisor: Poly, state: State, walk: Walk) -> Poly:
    """``i / cols`` and ``i % cols`` as atoms with ranges of their own."""
    name = f"%{'quotient' if op == '/' else 'rest'} {atom} {divisor.text()}"
    bounds = state.bounds
    if isinstance(bounds, dict):
        if op == "%":
            bounds[name] = divisor
        elif atom in bounds and (whole := bounds[atom].over(divisor)) is not None:
            bounds[name] = whole
    return symbol(name)


def _extent(axis: str, walk: Walk) -> Poly:
    return constant(walk.block[axis]) if axis in walk.block else symbol(f"@B{axis}")


def global_indices(poly: Poly, walk: Walk) -> Poly:
    """blockIdx * blockDim + threadIdx as the one atom of the global index."""
    for axis in AXES:
        if f"@b{axis}" in poly.symbols and f"@t{axis}" in poly.symbols:
            pair = symbol(f"@b{axis}") * _extent(axis, walk) + symbol(f"@t{axis}")
            poly = poly.replace(pair, symbol(f"@g{axis}"))
    return poly
