"""Which variables number the threads of the grid, and the conditions that keep them inside the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.analysis.conditions import negation, upper_bound
from fsr.analysis.definitions import NO_CONSTANTS, Definitions, definitions
from fsr.analysis.polynomial import Poly
from fsr.source.form import Comment, Declare, Expr, If, KernelForm, Return, Stmt, conjuncts

AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class GlobalId:
    """A local that is ``blockIdx.a * width + threadIdx.a``. ``axis``: 'x', 'y' or 'z'; ``block_dim``: None when
    the width is ``blockDim.a``, else the constant or expression in its place."""

    name: str
    axis: str
    block_dim: Poly | None
    declaration: Declare


@dataclass(frozen=True, slots=True)
class Guard:
    """What runs under ``test``: ``bounds`` gives for each variable with ``var < bound`` (exclusive) the bound as
    written (``<=`` is turned). ``returns``: written as ``if (...) return;``, so that it guards the rest of the
    list it stands in; otherwise it guards its own body. ``exact``: the test says nothing else."""

    statement: If
    test: Expr
    bounds: Mapping[str, Expr]
    returns: bool
    exact: bool


def global_ids(
    kernel: KernelForm, known: Definitions | None = None, constants: Mapping[str, int] | None = None
) -> dict[str, GlobalId]:
    """The locals that are a global thread id, by name. Declarations at the kernel's top level only."""
    known, found = known or definitions(kernel), dict[str, GlobalId]()
    for s in kernel.body:
        if isinstance(s, Declare) and s.name in known.values and s.init is not None:
            axis = global_axis(known.poly(s.init, constants or NO_CONSTANTS))
            if axis is not None:
                found[s.name] = GlobalId(s.name, axis[0], axis[1], s)
    return found


def global_axis(value: Poly) -> tuple[str, Poly | None] | None:
    """``(axis, None)`` for ``blockIdx.a * blockDim.a + threadIdx.a``, ``(axis, width)`` with another width."""
    for axis in AXES:
        block, thread = f"blockIdx.{axis}", f"threadIdx.{axis}"
        width, step = value.coefficient(block), value.coefficient(thread)
        if width is None or step is None or step.value != 1 or not width.terms:
            continue
        if value.without(block).without(thread).terms:
            continue
        if width.depends_on(["threadIdx", "blockIdx", "gridDim"]):
            continue
        return axis, None if width.single == f"blockDim.{axis}" else width
    return None


def guard_of(s: Stmt, names: frozenset[str]) -> Guard | None:
    """The guard that a statement is for the given variables, or None."""
    if not isinstance(s, If) or s.orelse:
        return None
    then = [t for t in s.then if not isinstance(t, Comment)]
    returns = len(then) == 1 and isinstance(then[0], Return)
    test = negation(s.test) if returns else s.test
    parts, bounds = conjuncts(test), dict[str, Expr]()
    for part in parts:
        for name in names:
            bound = upper_bound(part, name)
            if bound is not None:
                bounds[name] = bound
    return Guard(s, test, bounds, returns, len(bounds) == len(parts)) if bounds else None
