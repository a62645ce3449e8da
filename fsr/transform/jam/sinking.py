"""Variables that are declared far from their use, declared where they are used: ``int i;`` at a kernel's head."""

from __future__ import annotations

from dataclasses import replace

from fsr.source.form import Assign, Declare, For, If, Name, Scope, Stmt, While
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, blocks_of, exprs_of, names_in, names_mentioned, walk_stmts


def sunk(body: Block) -> Block:
    """The statements, in which variables without a first value are declared in the innermost block that knows them and
    sets them before it reads them."""
    found: list[str] = []
    for s in walk_stmts(body):
        found += [s.name] if isinstance(s, Declare) else [s.var] if isinstance(s, For) and s.type is not None else []
    return _sunk(body, frozenset(name for name in found if found.count(name) == 1))


def _sunk(stmts: Block, single: frozenset[str]) -> Block:
    todo, done = list(stmts), list[Stmt]()
    while todo:
        s, *todo = todo
        if isinstance(s, Declare) and s.init is None and not s.dims and not s.qualifiers and s.name in single:
            moved = _moved(s, todo)
            if moved is not None:
                todo = moved
                continue
        done.append(with_blocks(s, lambda block: _sunk(block, single)))
    return tuple(done)


def _moved(declared: Declare, rest: list[Stmt]) -> list[Stmt] | None:
    """The statements behind a declaration with it inside of them; None where it stays."""
    name = declared.name
    users = [s for s in rest if name in names_mentioned((s,))]
    if users and all(_counts(s, name) for s in users):
        return [replace(s, type=declared.type) if isinstance(s, For) and _counts(s, name) else s for s in rest]
    if len(users) != 1 or not isinstance(users[0], If | For | While | Scope):
        return None
    (user,) = users
    inside = [block for block in blocks_of(user) if name in names_mentioned(block)]
    own = any(name in names_in(e) for e in exprs_of(user)) or (isinstance(user, For) and user.var == name)
    if own or len(inside) != 1 or (isinstance(user, For | While) and not _set_first(inside[0], name)):
        return None
    moved = with_blocks(user, lambda block: (declared, *block) if block is inside[0] else block)
    return [moved if s is user else s for s in rest]


def _counts(s: Stmt, name: str) -> bool:
    """Whether a statement is a loop that the variable counts, and sets before."""
    return isinstance(s, For) and s.type is None and s.var == name and name not in names_in(s.start)


def _set_first(block: Block, name: str) -> bool:
    """Whether each run of a block sets a variable before it reads it, or does neither."""
    first, *others = [s for s in block if name in names_mentioned((s,))]
    if isinstance(first, Assign):
        return first.target == Name(name) and first.op == "=" and name not in names_in(first.value)
    if _counts(first, name):
        return True
    known = [inner for inner in blocks_of(first) if name in names_mentioned(inner)]
    counted = isinstance(first, For) and first.var == name
    if others or counted or not known or any(name in names_in(e) for e in exprs_of(first)):
        return False
    return all(_set_first(inner, name) for inner in known)
