"""One more column in two-dimensional shared arrays whose rows all start in the same bank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.calls import is_atomic
from fsr.analysis.types import aliases, resolved
from fsr.hardware.c_types import element_bytes
from fsr.records import Candidate
from fsr.source.form import Binary, Call, Declare, Expr, Index, Literal, Name, OpaqueExpr, OpaqueStmt, Unary
from fsr.source.mapping import map_expr, replace_stmt
from fsr.source.walk import base_name, exprs_of, integer, names_in, opaque_names, walk_expr, walk_exprs, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

BANKS_BYTES = 128  # 32 banks of 4 bytes: rows of a multiple of this put a column into one bank


@dataclass(frozen=True, slots=True)
class SharedPadding:
    """``tile[32][32]`` becomes ``tile[32][33]``."""

    name: str = "shared-padding"
    aims_at: frozenset[str] = frozenset(["shared-conflicts"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Arrays with rows of a multiple of 128 bytes of which only elements are used."""
        for target in targets(subject):
            for declared in _arrays(target):
                yield Move(self.name, region_in(target, f"shared:{declared.name}"), (), 1.3)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the wider array."""
        target = target_of(subject, move)
        name = part_of(move).removeprefix("shared:")
        declared = next(d for d in _arrays(target) if d.name == name)
        width = integer(declared.dims[1])
        wider: Expr = Binary("+", declared.dims[1], Literal("1")) if width is None else Literal(str(width + 1))
        new = replace(declared, dims=(declared.dims[0], wider))
        body = replace_stmt(target.kernel.body, declared, (new,))
        return rewritten(target, move, replace(target.kernel, body=body))


def _arrays(target: Target) -> Iterator[Declare]:
    names = aliases(target.source)
    for s in walk_stmts(target.kernel.body):
        if not (isinstance(s, Declare) and "__shared__" in s.qualifiers and len(s.dims) == 2 and s.init is None):
            continue
        width = target.poly(s.dims[1]).value
        size = element_bytes(resolved(s.type, names))
        if width and size and width * size % BANKS_BYTES == 0 and _elements_only(target, s.name):
            yield s


def _elements_only(target: Target, name: str) -> bool:
    """Whether every mention of the array is an element ``a[i][j]``."""

    def hide(e: Expr) -> Expr:
        match e:
            case Index(Index(Name(text), i), j) if text == name:
                return Binary(",", i, j)
        return e

    everything = list(walk_exprs(target.kernel.body))
    addresses = [x for x in everything if isinstance(x, Unary) and x.op == "&" and base_name(x) == name]
    atomics = [a for x in everything if isinstance(x, Call) and is_atomic(x) for a in x.args[:1]]
    if any(x not in atomics for x in addresses):
        return False
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, OpaqueStmt) and name in opaque_names(s.text):
            return False
        for e in exprs_of(s):
            left = map_expr(e, hide)
            opaque = any(isinstance(x, OpaqueExpr) and name in opaque_names(x.text) for x in walk_expr(left))
            if opaque or name in names_in(left):
                return False
    return True
