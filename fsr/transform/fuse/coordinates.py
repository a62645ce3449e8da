"""Indices of several launches in common terms: polynomials over sizes and where a thread stands.

A coordinate is a symbol that begins with ``@``: ``@x`` is the thread's place along x of the whole grid, ``@turn.x``
that of a turn of a loop over the grid, and ``@2.j`` a loop variable, or anything else that changes, of the launch at
position 2. What has none is the same for all threads.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from fsr.analysis.polynomial import Poly, constant, polynomial, symbol
from fsr.analysis.threads import AXES
from fsr.analysis.types import is_integer, resolved
from fsr.expressions import parse
from fsr.records import Launch, Role, ScalarArgument
from fsr.source.form import Binary, Expr, Name
from fsr.source.mapping import map_expr
from fsr.transform.target import Target

Told = Mapping[str, Poly]
"""What ``threadIdx.x`` and the like are."""


def size_poly(text: str) -> Poly:
    """A size expression as a polynomial over sizes; what is none in it is a symbol."""

    def of(node: ast.expr) -> Poly:
        match node:
            case ast.Constant(value=int(value)):
                return constant(value)
            case ast.Name(id=name):
                return symbol(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return of(left) + of(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return of(left) - of(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return of(left) * of(right)
        return symbol("{" + ast.unparse(node) + "}")

    return of(parse(text))


def is_coordinate(name: str) -> bool:
    """Whether a symbol depends on the thread, or on anything that changes."""
    return "@" in name


def launched(launch: Launch, block: tuple[int, int, int]) -> dict[str, Poly]:
    """What a thread is told of its place by its launch."""
    told = dict[str, Poly]()
    for axis, grid, extent in zip(AXES, launch.grid, block, strict=True):
        whole, number = symbol(f"@{axis}"), symbol(f"@block.{axis}")
        one = grid.strip() == "1"
        told[f"blockDim.{axis}"], told[f"gridDim.{axis}"] = constant(extent), size_poly(grid)
        told[f"blockIdx.{axis}"] = constant(0) if one else whole if extent == 1 else number
        told[f"threadIdx.{axis}"] = constant(0) if extent == 1 else whole - told[f"blockIdx.{axis}"] * constant(extent)
    return told


def placed(ids: Mapping[str, Poly]) -> dict[str, Poly]:
    """The same for a kernel that asks for nothing but global ids, which are as given."""
    told = {f"blockIdx.{axis}": constant(0) for axis in ids}
    return told | {f"threadIdx.{axis}": value for axis, value in ids.items()}


@dataclass
class Indices:
    """The index expressions of a kernel, macros written out. ``told``: of ids; ``widths``: exclusive bounds of
    coordinates that hold wherever the kernel is called at all."""

    target: Target
    told: Told
    widths: Mapping[str, Poly] = field(default_factory=dict)
    loops: Mapping[str, Poly] = field(default_factory=dict)  # loop variables that are coordinates of the grid
    _parts: dict[str, Poly] = field(default_factory=dict)  # names that stand for quotients
    _quotients: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # symbols of them: what by what

    def __post_init__(self) -> None:
        self._passed = {
            p.name: _scalar(self.target, arg)
            for p, arg in zip(self.target.kernel.params, self.target.launch.args, strict=True)
            if is_integer(resolved(p.type, self.target.aliases))  # a narrower one may hold another number
        }

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an integer expression."""
        return polynomial(map_expr(self.target.known.expand(e), self._apart), self._meaning)

    def id_along(self, axis: str) -> Poly:
        """A thread's place along an axis."""
        return self._told(f"blockIdx.{axis}") * self._told(f"blockDim.{axis}") + self._told(f"threadIdx.{axis}")

    def extent(self, axis: str) -> Poly:
        """The number of threads along an axis."""
        return self._told(f"gridDim.{axis}") * self._told(f"blockDim.{axis}")

    def _told(self, name: str) -> Poly:
        return self.told.get(name, symbol(name))

    def _apart(self, e: Expr) -> Expr:
        """Quotients by names, and remainders by quotients: ``i / w * w + i % w`` is ``i``."""
        if not (isinstance(e, Binary) and e.op in ("/", "%")):
            return e
        quotient = self._divided(polynomial(e.left, self._meaning), polynomial(e.right, self._meaning))
        name = f"@part{len(self._parts)}"
        self._parts[name] = quotient
        return Name(name) if e.op == "/" else Binary("-", e.left, Binary("*", e.right, Name(name)))

    def _divided(self, value: Poly, by: Poly) -> Poly:
        inner = self._quotients.get(value.single or "")
        if inner is not None:
            return self._divided(inner[0], inner[1] * by)
        for lower in (constant(0), *(symbol(s) for s, width in self.widths.items() if width == by)):
            whole = (value - lower).over(by)
            if whole is not None and (not lower.terms or value.coefficient(lower.single or "") == constant(1)):
                return whole
        text = f"{{({value.text()}) / ({by.text()})}}"
        self._quotients[text] = (value, by)
        return symbol(text)

    def _meaning(self, name: str) -> Poly | None:
        if name in self._parts:
            return self._parts[name]
        if name in self.told:
            return self.told[name]
        if name in self.loops:
            return self.loops[name]
        if name not in self.target.known.changed:
            if name in self._passed:
                return self._passed[name]
            if name in self.target.constants and name not in self.target.known.types:
                return constant(self.target.constants[name])
        return symbol(f"@{self.target.position}.{name}")


def _scalar(target: Target, arg: str | ScalarArgument) -> Poly:
    if isinstance(arg, ScalarArgument):
        return size_poly(arg.value)
    found = next((a for a in target.contract.args if a.name == arg and a.role is Role.SCALAR), None)
    return symbol(f"arg:{arg}") if found is None or found.value is None else size_poly(str(found.value))
