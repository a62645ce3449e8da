"""What a branch on data stores, as selects: ``if (v > s[t]) { s[t] = v; at[t] = i; }`` of a tree over shared arrays.

Where a kernel branches, watching has to see both sides of every branch, and a tree over a block's threads has as many
as there are threads. A select is followed as it is. Only watching is given this text: what is found is held against the
original as it stands, so that no more is asked of it than that it mostly means the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.source.form import Assign, Binary, Call, Declare, Expr, If, Index, Name, Stmt, Ternary, conjunction, conjuncts
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import redefinition, with_definitions
from fsr.source.walk import Block, exprs_of, fresh, names_in, names_mentioned, walk_expr, walk_exprs, walk_stmts

_JOINED = {"&&": "&", "||": "|"}


def with_selects(source: str) -> str:
    """The text with such branches of its kernels as selects; itself where there is none."""
    kernels = [k for k in parse_kernels(source).values() if k.span is not None]
    changed = {k.name: replace(k, body=_Selects(k.body).of(k.body)) for k in kernels}
    own = [k for k in kernels if changed[k.name].body != k.body]
    return with_definitions(source, own, lambda k: (redefinition(source, k, changed[k.name]),)) if own else source


class _Selects:
    """``taken``: names that a kernel has; ``data``: those of variables that data goes into."""

    def __init__(self, body: Block) -> None:
        self.taken, self.data = set(names_mentioned(body)), _of_data(body)

    def of(self, body: Block) -> Block:
        found = list[Stmt]()
        for s in body:
            s = with_blocks(s, self.of)
            found += self._chosen(s, tuple(found)) if isinstance(s, If) else (s,)
        return tuple(found)

    def _chosen(self, s: If, before: Block) -> Block:
        """A branch as selects; itself where it is none that only stores what it could store anyway."""
        parts = conjuncts(s.test)
        first = next((n for n, part in enumerate(parts) if self._asks(part)), len(parts))
        test = conjunction(parts[first:])
        stores = [x for x in s.then if isinstance(x, Assign) and x.op == "=" and isinstance(x.target, Name | Index)]
        if test is None or s.orelse or len(stores) != len(s.then):
            return (s,)
        at_once = (e for x in before if isinstance(x, Declare | Assign) for e in exprs_of(x))
        read = _elements((*at_once, _first(test)))
        sure = {e.index for e in read}  # elements of arrays beside those are taken to be there, too
        elements = [x.target for x in stores if isinstance(x.target, Index)]
        joined = isinstance(test, Binary) and test.op in _JOINED  # of others compilers make selects of variables
        within = {x.index for x in elements} <= {x.index for x in elements if x in read}
        if not (elements or joined) or not within or any(isinstance(e, Call) for e in walk_exprs((s,))):
            return (s,)
        take = self._fresh("take")
        lines: Block = (Declare("bool", take, rewrite(test, lambda e: _at_once(e, sure))),)
        for x in stores:  # both are read before: what is read in one case alone is a branch again
            new, old = self._fresh("new"), self._fresh("old")
            lines += (Declare("auto", new, x.value), Declare("auto", old, x.target))
            lines += (replace(x, value=Ternary(Name(take), Name(new), Name(old))),)
        around = conjunction(parts[:first])
        return lines if around is None else (If(around, lines),)

    def _asks(self, e: Expr) -> bool:
        """Whether an expression depends on data."""
        return _reads(e) or not self.data.isdisjoint(names_in(e))

    def _fresh(self, word: str) -> str:
        name = fresh(f"fsr_{word}", self.taken)
        self.taken.add(name)
        return name


def _of_data(body: Block) -> frozenset[str]:
    """Variables that are set to what is read, or to what another thread hands over, or to what is made of such."""
    sets = [(s.name, s.init) for s in walk_stmts(body) if isinstance(s, Declare) and s.init is not None]
    sets += [(s.target.text, s.value) for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Name)]
    found, before = frozenset[str](), frozenset({""})
    while found != before:
        before = found
        found |= {name for name, value in sets if _reads(value) or not found.isdisjoint(names_in(value))}
    return found


def _reads(e: Expr) -> bool:
    """Whether an expression reads an element, or calls something: what another lane has."""
    return any(isinstance(x, Index | Call) for x in walk_expr(e))


def _first(e: Expr) -> Expr:
    """What of a test is reckoned in any case."""
    return _first(e.left) if isinstance(e, Binary) and e.op in _JOINED else e


def _elements(told: Iterable[Expr]) -> set[Index]:
    """The elements in some expressions."""
    return {x for e in told for x in walk_expr(e) if isinstance(x, Index)}


def _at_once(e: Expr, sure: set[Expr]) -> Expr | None:
    """Both sides of what is joined, whichever way the first one turns out, if the second reads what surely is there."""
    if isinstance(e, Binary) and e.op in _JOINED and _is_test(e):
        left, right = (rewrite(x, lambda y: _at_once(y, sure)) for x in (e.left, e.right))
        op = _JOINED[e.op] if {x.index for x in _elements((e.right,))} <= sure else e.op
        return Binary(op, left, right)
    return None


def _is_test(e: Expr) -> bool:
    """Whether an expression is 1 or 0."""
    match e:
        case Binary("&&" | "||", left, right):
            return _is_test(left) and _is_test(right)
        case Binary("<" | ">" | "<=" | ">=" | "==" | "!="):
            return True
    return False
