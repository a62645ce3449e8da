"""What pointers cut out of the launch's shared memory: ``float *b = a + n; int *c = (int *)(b + n)`` are arrays of
their own, each with its own type."""

from __future__ import annotations

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.types import bare
from fsr.source.form import Binary, Cast, Declare, Expr, Index, Name, Unary
from fsr.source.types import type_bytes
from fsr.source.walk import names_assigned, walk_stmts
from fsr.transform.target import Target


class Launched:
    """The parts of the shared memory that a launch gives a block, by the pointers that begin them.

    A part is known by the bytes in front of it, which are the same for all threads and blocks. That no kernel reaches
    from one part into the next is taken for granted: that would read numbers of one type as another's."""

    def __init__(self, target: Target) -> None:
        self._target = target
        body = target.kernel.body
        declared = [s for s in walk_stmts(body) if isinstance(s, Declare)]
        self._assigned = names_assigned(body)
        self._alike = frozenset(p.name for p in target.kernel.params if not p.is_pointer) - self._assigned
        self._at: dict[str, tuple[str, Poly, int]] = {
            s.name: (s.name, constant(0), self._bytes(s.type))
            for s in declared
            if {"extern", "__shared__"} <= set(s.qualifiers)
        }
        for s in declared:
            found = self._begun(s)
            if found is not None:
                self._at[s.name] = found

    def part(self, name: str) -> str:
        """The name of the memory that begins where the pointer points to; '' where it is none of the launch's, or its
        very beginning."""
        root, before, _ = self._at.get(name, ("", constant(0), 0))
        return f"{root}+{before}" if before.terms else ""

    def _begun(self, s: Declare) -> tuple[str, Poly, int] | None:
        """The root of what a pointer points to, the bytes in front of it and those of an element of its own."""
        if "*" not in s.type or s.dims or s.init is None or s.name in self._assigned or s.name in self._at:
            return None
        base, behind = _behind(s.init)
        each = 0
        if isinstance(base, Cast) and "*" in base.type:
            each, base = self._bytes(base.type), base.operand
        if not isinstance(base, Name) or base.text not in self._at:
            return None
        root, before, own = self._at[base.text]
        by = constant(0) if behind is None else self._target.known.poly(behind)
        if not all(n in self._alike or n in self._target.constants for n in by.names()):
            return None
        return root, before + by * constant(each or own), self._bytes(s.type)

    def _bytes(self, type_: str) -> int:
        return type_bytes(bare(type_), self._target.aliases)


def _behind(e: Expr) -> tuple[Expr, Expr | None]:
    """Where a pointer begins and how many elements it goes on, of what it points to there."""
    match e:
        case Cast(type_, Binary("+", _, _) | Unary("&", _) as moved) if "*" in type_:
            return _behind(moved)
        case Binary("+", Binary("+", base, index), more):
            return _behind(Binary("+", base, Binary("+", index, more)))
        case Unary("&", Index(base, index)) | Binary("+", base, index):
            return base, index
    return e, None
