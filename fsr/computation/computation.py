"""A computation: buffers, and the statements that make them, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from fsr.computation import expression
from fsr.computation.expression import Expr

KEPT = "$"  # what the names of buffers begin with that are none of the contract's but kept in scratch memory
KINDS = ("map", "fold", "scan", "scatter", "sequence", "opaque")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer that statements read or write. shape: size expressions, outermost first."""

    name: str
    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One value for each point of a domain.

    kind: 'map' (each element is written once), 'fold', 'scan' (a fold whose length grows with a dimension), 'scatter'
    (``target`` [``place``] ``combine``= value, where data decides on the place), 'sequence' (a recurrence), 'opaque'
    (only ``reads`` and the target are known). domain: names of dimensions and their extents as size expressions. value:
    None of an opaque statement. place: the element that is written, one expression a dimension of the target.
    """

    kind: str
    target: str
    domain: tuple[tuple[str, str], ...]
    value: Expr | None
    place: tuple[Expr, ...] = ()
    combine: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Computation:
    """What a plan computes. ``sizes``: the named sizes; ``buffers``: those of the contract that take part and those
    between statements; ``assumes``: what must hold besides the contract, in words."""

    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...]
    assumes: tuple[str, ...] = ()

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name. Raises KeyError."""
        for found in self.buffers:
            if found.name == name:
                return found
        raise KeyError(name)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Targets that no later statement reads: what is left of the computation."""
        return tuple(dict.fromkeys(s.target for s in self.statements if not s.target.startswith(("_", KEPT))))


_CLASSES: Mapping[str, type] = {
    c.__name__: c
    for c in (
        expression.Affine,
        expression.Remainder,
        expression.Quotient,
        expression.Const,
        expression.Number,
        expression.Load,
        expression.Op,
        expression.Fold,
        expression.Case,
        expression.Recurrence,
        expression.Carried,
        Buffer,
        Statement,
        Computation,
    )
}


def to_record(value: Any) -> Any:
    """A computation or a part of it as JSON takes it."""
    if is_dataclass(value):
        return {"is": type(value).__name__} | {f.name: to_record(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_record(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"is": "float", "value": repr(value)}
    return value


def from_record(record: Any) -> Any:
    """The inverse of :func:`to_record`. Raises KeyError, TypeError for what is none."""
    if isinstance(record, list):
        return tuple(from_record(item) for item in record)
    if isinstance(record, dict):
        if record["is"] == "float":
            return float(record["value"])
        return _CLASSES[record["is"]](**{key: from_record(item) for key, item in record.items() if key != "is"})
    return record
