"""Initialisers of arrays told as assignments, for analysis: what a text in braces reads does not show otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.source.form import Assign, Declare, Index, Name, OpaqueExpr, Stmt, number
from fsr.source.mapping import map_stmts
from fsr.source.parse import parse_kernels
from fsr.source.tokens import spelt, split_commas, tokenize
from fsr.source.walk import Block, contains_opaque


class Lists:
    """Tells such initialisers, and takes them back."""

    def __init__(self) -> None:
        self._lists: dict[int, Declare] = {}
        self._told: list[Assign] = []  # kept: they are known by their identity

    def told(self, body: Block) -> Block:
        """The statements with an assignment for each value in braces."""
        return map_stmts(body, lambda s: tuple(self._one(s)))

    def back(self, body: Block) -> Block:
        """The statements as they were written."""
        told = {id(s) for s in self._told}
        return map_stmts(body, lambda s: () if id(s) in told else self._lists.get(id(s), s))

    def _one(self, s: Stmt) -> Iterator[Stmt]:
        values = _values(s) if isinstance(s, Declare) and len(s.dims) == 1 and not s.qualifiers else ()
        if not values or not isinstance(s, Declare):
            yield s
            return
        bare = replace(s, init=None)
        self._lists[id(bare)] = s
        own = [replace(a, target=Index(Name(s.name), number(n))) for n, a in enumerate(values)]
        self._told += own
        yield bare
        yield from own


def _values(s: Declare) -> tuple[Assign, ...]:
    """The values, each assigned to something; none where they are not told, or but numbers."""
    text = s.init.text.strip() if isinstance(s.init, OpaqueExpr) else ""
    if not text.startswith("{") or not contains_opaque((s,)) or text.count("{") > 1:
        return ()
    parts = [spelt(part) for part in split_commas(list(tokenize(text[1:-1]))) if part]
    lines = "".join(f"x = {part};\n" for part in parts)
    found = parse_kernels(f"__global__ void f() {{\n{lines}}}\n").get("f")
    body = found.body if found is not None else ()
    values = tuple(a for a in body if isinstance(a, Assign) and a.target == Name("x") and a.op == "=")
    return values if len(values) == len(parts) == len(body) and not contains_opaque(values) else ()
