"""Shared arrays of which every thread touches its own element only become variables: registers in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.calls import is_atomic
from fsr.records import Candidate
from fsr.source.arrays import indices_of
from fsr.source.form import Call, Declare, Expr, Name, OpaqueExpr, OpaqueStmt, Unary
from fsr.source.mapping import map_expr, map_exprs, replace_stmt
from fsr.source.walk import (
    base_name,
    exprs_of,
    fresh,
    names_in,
    opaque_names,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

GAIN = 1.12


@dataclass(frozen=True, slots=True)
class ScalarReplacement:
    """``own[threadIdx.x]`` becomes ``own_value``."""

    name: str = "scalar-replacement"
    aims_at: frozenset[str] = frozenset(["shared-conflicts", "instructions", "latency", "occupancy"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Arrays that are indexed by the thread's place in the block, and by nothing else."""
        for target in targets(subject):
            for declared in _own(target):
                yield Move(self.name, region_in(target, f"shared:{declared.name}"), (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with a variable in the array's place."""
        target = target_of(subject, move)
        name = part_of(move).removeprefix("shared:")
        declared = next(d for d in _own(target) if d.name == name)
        variable = fresh(f"{name}_value", target.names)

        def change(e: Expr) -> Expr:
            return Name(variable) if indices_of(e, declared) is not None else e

        own = replace(declared, name=variable, dims=(), qualifiers=(), span=None)
        body = map_exprs(replace_stmt(target.kernel.body, declared, (own,)), change)
        return rewritten(target, move, replace(target.kernel, body=body))


def _own(target: Target) -> Iterator[Declare]:
    for s in target.kernel.body:  # an array of an inner scope keeps its elements from turn to turn
        plain = isinstance(s, Declare) and s.qualifiers == ("__shared__",) and s.dims and s.init is None
        if plain and isinstance(s, Declare) and _is_own(target, s):
            yield s


def _is_own(target: Target, declared: Declare) -> bool:
    """Whether every mention is the element at the thread's place, along all axes that the block has."""
    everything = list(walk_exprs(target.kernel.body))
    if any(isinstance(x, Unary) and x.op == "&" and base_name(x) == declared.name for x in everything):
        return False
    if any(isinstance(x, Call) and is_atomic(x) and declared.name in names_in(x) for x in everything):
        return False
    found = {tuple(_axis(target, i) for i in at) for x in everything if (at := indices_of(x, declared)) is not None}
    if len(found) != 1 or not _covers(target, next(iter(found))):
        return False
    return not any(_mentions(s_exprs, declared) for s_exprs in _left(target, declared))


def _axis(target: Target, index: Expr) -> str:
    """'x', 'y' or 'z' where an index is the thread's place along that axis; else ''."""
    single = target.poly(index).single or ""
    return single.removeprefix("threadIdx.") if single.startswith("threadIdx.") else ""


def _covers(target: Target, axes: tuple[str, ...]) -> bool:
    extents = dict(zip("xyz", target.launch.block, strict=True))
    return "" not in axes and len(set(axes)) == len(axes) and all(n == "1" or a in axes for a, n in extents.items())


def _left(target: Target, declared: Declare) -> Iterator[Expr | str]:
    """What is left of all statements once the elements are hidden."""
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, OpaqueStmt):
            yield s.text
        for e in exprs_of(s):
            yield map_expr(e, lambda x: Name("0") if indices_of(x, declared) is not None else x)


def _mentions(left: Expr | str, declared: Declare) -> bool:
    if isinstance(left, str):
        return declared.name in opaque_names(left)
    opaque = any(isinstance(x, OpaqueExpr) and declared.name in opaque_names(x.text) for x in walk_expr(left))
    return opaque or declared.name in names_in(left)
