"""A section as all threads of the block would do it in the one thread's place: told its ids, its names apart from all
others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from fsr.source.form import Declare, Expr, ExprStmt, For, If, Literal, Name, Scope, Stmt, conjunction
from fsr.source.mapping import replace_stmt, substitute, with_blocks, with_exprs
from fsr.source.walk import (
    Block,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    fresh,
    jumps,
    names_in,
    names_mentioned,
    variables,
    walk_stmts,
)
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.sections.memory import Memory
from fsr.transform.sections.places import Section, Together
from fsr.transform.target import Target


@dataclass(frozen=True)
class Opened:
    """``test``: what else the section asks; ``lead``: the one thread's values of what each thread has for itself;
    ``body``: what it does; ``memory``: of the kernel in which all do it; ``together``: what threads have in common
    there; ``varying``: names that may hold something else in another thread."""

    section: Section
    test: Expr | None
    lead: tuple[Declare, ...]
    body: Block
    memory: Memory
    together: Together
    varying: frozenset[str]


def opened(
    target: Target, together: Together, section: Section, taken: set[str], turn: For | None = None
) -> Opened | None:
    """The section, opened; None where it does what is not understood. ``taken``: names not to use, to which its own are
    added; ``turn``: goes through the threads that do it, where they are several, by their ids along x."""
    body, rest = section.body, section.alone.rest
    if contains_opaque(body) or contains_return(body) or jumps(body) or _waits(body):
        return None
    if any(isinstance(s, Declare) and set(s.qualifiers) - {"constexpr"} for s in walk_stmts(body)):
        return None
    counts = Counter((*variables(target.kernel.body), *(p.name for p in target.kernel.params)))
    body = distinct(body, {}, frozenset(n for n, count in counts.items() if count > 1), taken)
    inside = frozenset(variables(body))
    needed = (names_mentioned(body) | frozenset[str]().union(*map(names_in, rest))) - inside
    ids: dict[str, Expr] = {axis: Literal(f"{value}u") for axis, value in section.alone.ids.items()}
    if turn is not None:
        ids["threadIdx.x"] = Name(turn.var)
    one = _One(target, together.varying, ids, taken)
    told = {name: value for name in sorted(needed) if (value := one.name(name)) is not None}
    body = one.with_ids(substitute(body, told))
    test = conjunction(rest)
    if test is not None:
        test = one.expr(substitute(test, told))
    lead = tuple(one.lead)
    inner: Block = (*lead, *(body if test is None else (If(test, body),)))
    place: Stmt = Scope(inner) if turn is None else replace(turn, body=inner)
    whole = replace(target.kernel, body=replace_stmt(target.kernel.body, section.stmt, (place,)))
    common = Together(target, whole)
    if test is not None and not common(test):
        return None
    varying = common.varying | (together.varying - inside)
    memory = Memory(replace(target, kernel=whole), section.alone.ids)
    return Opened(section, test, lead, body, memory, common, varying)


def _waits(body: Block) -> bool:
    return contains_barrier(body) or contains_warp_wide(body)


class _One:
    """``lead``: declarations of what the one thread has."""

    def __init__(self, target: Target, varying: frozenset[str], ids: Mapping[str, Expr], taken: set[str]) -> None:
        self._target, self._varying, self._taken = target, varying, taken
        self._ids: dict[tuple[str, str], Expr] = {}
        for name, value in ids.items():
            variable, axis = name.split(".")
            self._ids[variable, axis] = value
        self._known: dict[str, Expr | None] = {}
        self.lead: list[Declare] = []

    def with_ids(self, body: Block) -> Block:
        """Statements told the thread's ids."""
        return with_ids(body, self._ids)

    def expr(self, e: Expr) -> Expr:
        """An expression told them."""
        (told,) = with_ids((ExprStmt(e),), self._ids)
        assert isinstance(told, ExprStmt)
        return told.expr

    def name(self, name: str) -> Expr | None:
        """What stands for a variable that may hold something else in each thread, or each time; None for all others,
        and where it changes."""
        known = self._target.known
        value = known.values.get(name)
        if name not in self._varying or value is None or "&" in known.types[name]:
            return None
        if name not in self._known:
            told = {n: found for n in sorted(names_in(value)) if (found := self.name(n)) is not None}
            own = fresh(f"{name}_one", self._taken)
            self._taken.add(own)
            type_ = known.types[name]
            self.lead.append(Declare(type_, own, self.expr(substitute(value, told))))
            self._known[name] = Name(own)
        return self._known[name]


def distinct(block: Block, names: Mapping[str, Expr], again: frozenset[str], taken: set[str]) -> Block:
    """The statements with another name for each variable that has one of ``again``."""
    found, now = list[Stmt](), dict(names)

    def renamed(name: str) -> str:
        now.pop(name, None)
        if name not in again:
            return name
        own = fresh(name, taken)
        taken.add(own)
        now[name] = Name(own)
        return own

    for s in block:
        here = dict(now)
        match s:
            case Declare():
                s = with_exprs(s, partial(_substituted, here))
                found.append(replace(s, name=renamed(s.name)))
                continue
            case For(type=str()):
                s = replace(s, start=substitute(s.start, here), var=renamed(s.var))
                inner, now = now, here
                s = replace(s, bound=substitute(s.bound, inner), step=substitute(s.step, inner))
            case _:
                inner = here
                s = with_exprs(s, partial(_substituted, here))
                if isinstance(s, For) and isinstance(new := here.get(s.var), Name):
                    s = replace(s, var=new.text)
        found.append(with_blocks(s, partial(distinct, names=inner, again=again, taken=taken)))
    return tuple(found)


def _substituted(names: Mapping[str, Expr], e: Expr) -> Expr:
    return substitute(e, names)
