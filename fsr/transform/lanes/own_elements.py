"""Arrays of a thread's own of which each lane keeps the elements of its turns: ``h[s]`` in loops over s alone.

Loops that begin at one number and go on by one step are dealt out alike, so that an element is the same lane's in all
of them, and in all turns of a loop around them. An array that begins with number nought holds a lane's elements one
after the other, few enough for registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.source.form import (
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    number,
)
from fsr.source.mapping import map_exprs, map_stmts
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    integer,
    is_zero,
    loops,
    names_changed,
    names_in,
    names_mentioned,
    opaque_names,
    variables,
    walk_expr,
    walk_stmts,
)
from fsr.transform.rows.share import Group, plus, times
from fsr.transform.target import Target

_MOST_UNROLLED = 16


@dataclass(frozen=True)
class OwnArray:
    """An array that turns of ``loops`` touch alone, each turn the element of its number. ``size``: None where it is not
    known."""

    declared: Declare
    loops: tuple[For, ...]
    size: int | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    def is_of(self, loop: For) -> bool:
        """Whether the loop's own turns tell the element wherever the loop touches the array."""
        inside = [s for s in loops(loop.body) if _has(self.loops, s)]
        return _has(self.loops, loop) and not inside

    @property
    def packs(self) -> bool:
        """Whether a lane's elements may be numbered by its turns: they are, from nought on, and have no values given
        one by one."""
        init = self.declared.init
        zero = isinstance(init, OpaqueExpr) and init.text.strip("{} ").removesuffix("f") in ("", "0", "0.", "0.0")
        first = self.loops[0]
        return self.size is not None and (init is None or zero) and is_zero(first.start) and integer(first.step) == 1


def own_arrays(target: Target) -> dict[str, OwnArray]:
    """Those of a kernel, by name, as far as its text tells; whether the loops can be dealt out is not asked."""
    kernel = target.kernel
    counts = list(variables(kernel.body)) + [p.name for p in kernel.params]
    found = dict[str, OwnArray]()
    for s in walk_stmts(kernel.body):
        if isinstance(s, Declare) and len(s.dims) == 1 and not s.qualifiers and counts.count(s.name) == 1:
            users = _users(kernel, s.name) if not {"*", "&"} & set(s.type) and "volatile" not in s.type else None
            if users and _alike(users):
                found[s.name] = OwnArray(s, users, target.poly(s.dims[0]).value)
    return found


def _users(kernel: KernelForm, name: str) -> tuple[For, ...] | None:
    """The loops whose counters tell the elements; None where anything else does."""
    found = dict[int, For]()
    for s, around in _placed(kernel.body, ()):
        if isinstance(s, OpaqueStmt) and name in opaque_names(s.text):
            return None
        for e in exprs_of(s):
            if name not in names_in(e):
                continue
            loop = _told_by(e, name, around, kernel.by_reference)
            if loop is None:
                return None
            found[id(loop)] = loop
    return tuple(found.values())


def _told_by(e: Expr, name: str, around: tuple[For, ...], by_reference: frozenset[str]) -> For | None:
    """The one loop whose counter is the index wherever an expression mentions the array."""
    parts = list(walk_expr(e))
    counters = [found for x in parts if (found := _counter(x, name)) is not None]
    if len(counters) != parts.count(Name(name)) or len(set(counters)) != 1:
        return None
    if any(_hands_on(x, name, by_reference) for x in parts):
        return None
    counter = counters[0]
    inner = next((loop for loop in reversed(around) if loop.var == counter), None)
    hidden = inner is not None and any(isinstance(s, Declare) and s.name == counter for s in walk_stmts(inner.body))
    return None if hidden else inner


def _counter(e: Expr, name: str) -> str | None:
    """The variable that is the index where an expression is an element of the array."""
    match e:
        case Index(Name(text), Name(index)) if text == name:
            return index
    return None


def _hands_on(e: Expr, name: str, by_reference: frozenset[str]) -> bool:
    """Whether an expression tells others where an element is, or mentions the array in verbatim text."""
    match e:
        case Unary("&", operand):
            return name in names_in(operand)
        case Call(Name(called), args):
            return any(f"{called}({n}" in by_reference and name in names_in(arg) for n, arg in enumerate(args))
        case Call():
            return name in names_in(e)
        case OpaqueExpr(text):
            return name in opaque_names(text)
    return False


def _placed(body: Block, around: tuple[For, ...]) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """Each statement with the loops around it; a loop's head stands outside of it."""
    for s in body:
        yield s, around
        for block in blocks_of(s):
            yield from _placed(block, (*around, s) if isinstance(s, For) else around)


def _alike(users: tuple[For, ...]) -> bool:
    """Whether the loops are dealt out alike: from one number on, by one step."""
    heads = {(integer(s.start), integer(s.step)) for s in users}
    return len(heads) == 1 and None not in heads.pop()


def dealt(
    arrays: Iterable[OwnArray], shared: Iterable[For], rounds: Iterable[For]
) -> tuple[list[OwnArray], list[OwnArray]]:
    """The arrays of which lanes keep elements when the loops are shared, and those of them that some other loop
    touches, or one whose turns are dealt out in ``rounds``."""
    found, lost = list[OwnArray](), list[OwnArray]()
    listed, others = list(shared), list(rounds)
    for array in arrays:
        outside = [s for s in listed if not any(x is array.declared for x in walk_stmts(s.body))]
        if any(array.name in names_changed(s.body) for s in outside):
            whole = all(_has(outside, user) and not _has(others, user) for user in array.loops)
            (found if whole else lost).append(array)
    return found, lost


def _has(listed: Iterable[For], loop: For) -> bool:
    return any(s is loop for s in listed)


# ---------------------------------------------------------------- packed


def packed(body: Block, arrays: Iterable[OwnArray], group: Group, turn: Callable[[str], str]) -> Block:
    """Statements with arrays of as many elements as a lane has turns, numbered by these. ``turn``: gives a name for the
    turns' counter."""
    whole = {a.name: a for a in arrays if a.packs}
    sizes = {name: -(-(a.size or 0) // group.size) for name, a in whole.items()}
    if not sizes:
        return body

    def change(s: Stmt) -> Stmt:
        match s:
            case Declare(name=name) if name in sizes:
                return replace(s, dims=(number(sizes[name]),))
            case For(start=Name(lane)) if lane == group.lane and (names := names_mentioned(s.body) & sizes.keys()):
                even = all(_is_whole(s, whole[n], group) for n in names)
                return _by_turn(s, {n: sizes[n] for n in sorted(names)}, group, turn, even=even)
        return s

    return map_stmts(body, change)


def _is_whole(loop: For, array: OwnArray, group: Group) -> bool:
    """Whether a loop goes through all of an array, and lanes have as many of its turns each."""
    size = array.size or 0
    whole = loop.bound == array.declared.dims[0] or integer(loop.bound) == size
    return whole and loop.relation == "<" and size % group.size == 0


def _by_turn(loop: For, sizes: Mapping[str, int], group: Group, turn: Callable[[str], str], *, even: bool) -> For:
    """A lane's loop with its elements numbered by its turns: written out where these are few, so that they are where
    the compiler may keep them in registers. ``even``: all lanes have all of them."""
    most = min(sizes.values())
    counter = Name(turn(f"{loop.var}_turn")) if most <= _MOST_UNROLLED else None

    def element(e: Expr) -> Expr:
        match e:
            case Index(Name(text) as array, Name(index)) if text in sizes and index == loop.var:
                return Index(array, Binary("/", Name(index), number(group.size)) if counter is None else counter)
        return e

    body = map_exprs(loop.body, element)
    if counter is None:
        return replace(loop, body=body)
    own = Declare(f"const {loop.type}", loop.var, plus(loop.start, times(counter, number(group.size))))
    over = If(Unary("!", Binary(loop.relation, Name(loop.var), loop.bound)), (Jump("break"),))
    turns = (own, *(() if even else (over,)), *body)
    return For("int", counter.text, number(0), "<", number(most), number(1), turns, ("#pragma unroll",))
