"""Variables told apart: each declaration has a name of its own, and a whole number that tests change behind its
declaration (``if (u < 0) u = 0;``) is a new variable at each change, of which its value is told."""

from __future__ import annotations

from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Declare, Expr, For, If, Name, Stmt, Ternary, Unary
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import Block, fresh, names_in, walk_exprs, walk_stmts, without_comments


def told_apart(body: Block, taken: frozenset[str]) -> Block:
    """The statements so; ``taken``: names that no new variable may have. What stands in opaque text keeps its name, so
    that there must be none."""
    by_address = {n for e in walk_exprs(body) if isinstance(e, Unary) and e.op == "&" for n in names_in(e)}
    held = [s.init for s in walk_stmts(body) if isinstance(s, Declare) and "&" in s.type and s.init is not None]
    by_address |= {n for e in held for n in names_in(e)}
    return _Versions(set(taken), by_address).block(body)


class _Versions:
    def __init__(self, taken: set[str], by_address: set[str]) -> None:
        self.taken, self.by_address, self.seen = taken, by_address, set[str]()

    def block(self, body: Block) -> Block:
        found, rest = list[Stmt](), list(body)
        changing = dict[str, str]()  # whole numbers of this block: by their name now, the type
        while rest:
            s = rest.pop(0)
            name = s.name if isinstance(s, Declare) else s.var if isinstance(s, For) and s.type is not None else None
            if name in self.seen:
                assert name is not None
                own = self._new(name)
                whole = (s, *rest) if isinstance(s, Declare) else (s,)
                s, *more = substitute(whole, {name: Name(own)})
                rest, name = (more if isinstance(s, Declare) else rest), own
            self.seen |= {name} if name is not None else set()
            if isinstance(s, Declare) and is_integer(s.type) and not s.dims and not s.qualifiers:
                changing |= {s.name: s.type} if s.init is not None and s.name not in self.by_address else {}
            version = _version(s, changing)
            if version is not None:
                old, value = version
                own, type_ = self._new(old), changing.pop(old)
                rest = list(substitute(tuple(rest), {old: Name(own)}))
                s, changing[own] = Declare(type_, own, value), type_
                self.seen.add(own)
            found.append(with_blocks(s, self.block))
        return tuple(found)

    def _new(self, name: str) -> str:
        own = fresh(name, self.taken | self.seen)
        self.taken.add(own)
        return own


def _version(s: Stmt, changing: dict[str, str]) -> tuple[str, Expr] | None:
    """The variable to which alone a statement gives a value under a test, and its value behind it."""
    if not isinstance(s, If) or s.constexpr:
        return None
    names = {x.target.text for x in walk_stmts((s,)) if isinstance(x, Assign) and isinstance(x.target, Name)}
    name = names.pop() if len(names) == 1 else ""
    value = _value((s,), name) if name in changing else None
    return None if value is None else (name, value)


def _value(body: Block, name: str) -> Expr | None:
    match without_comments(body):
        case ():
            return Name(name)
        case (Assign(Name(text), "=", value),) if text == name:
            return value
        case (If(test, then, orelse),):
            yes, no = _value(then, name), _value(orelse, name)
            return None if yes is None or no is None else Ternary(test, yes, no)
    return None
