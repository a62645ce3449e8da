"""Loops of one thread whose turns can be dealt out: loops in one another whose turns write apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.polynomial import constant
from fsr.analysis.types import integer_bytes
from fsr.contract.model import Contract
from fsr.source.form import Call, Declare, For, Index, OpaqueExpr, Stmt, Unary
from fsr.source.walk import (
    Block,
    breaks,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    names_in,
    names_mentioned,
    names_written,
    walk_expr,
    walk_exprs,
    walk_stmts,
    without_comments,
)
from fsr.transform.sections.memory import Memory, Touch, Turns
from fsr.transform.sizes import INT_LIMIT, always, largest, largest_timed

DATA_TURNS = 32  # of a loop that data ends: a guess


@dataclass(frozen=True)
class Nest:
    """``loops``: whose turns are dealt out together, the outermost first; ``turns``: of each; ``body``: what is done in
    a turn; ``touches``: what that touches."""

    loops: tuple[For, ...]
    turns: tuple[Turns, ...]
    body: Block
    touches: tuple[Touch, ...]

    @property
    def count(self) -> int | None:
        """Turns in all, where that is a number."""
        whole = 1
        for one in self.turns:
            if one.count is None:
                return None
            whole *= one.count
        return whole

    def timed(self, memory: Memory) -> int:
        """Turns in all, at the sizes that are timed."""
        text = " * ".join(f"({one.text})" for one in self.turns)
        known = all(one.text is not None for one in self.turns)
        return (largest_timed(memory.target.contract, text) if known else None) or DATA_TURNS


def nest_of(memory: Memory, loop: For, varying: frozenset[str]) -> Nest | None:
    """As many loops in one another as can be dealt out together; None where not even the outermost can be. ``varying``:
    names that may hold something else in another thread."""
    chain = list(_chain(loop))
    for depth in range(len(chain), 0, -1):
        loops = tuple(one for one, _ in chain[:depth])
        found = _nest(memory, loops, chain[depth - 1][1], varying)
        if found is not None:
            return found
    return None


def _chain(loop: For) -> Iterator[tuple[For, Block]]:
    """Loops in one another with nothing beside, each with what is done in a turn of all down to it. What only computes
    a number before the next loop is done in each of its turns."""
    before: Block = ()
    while True:
        yield loop, (*before, *loop.body)
        body = without_comments(loop.body)
        if not body or not isinstance(body[-1], For) or not all(_is_number(s) for s in body[:-1]):
            return
        before, loop = (*before, *body[:-1]), body[-1]


def _is_number(s: Stmt) -> bool:
    if not isinstance(s, Declare) or s.init is None or s.dims or s.qualifiers or "&" in s.type:
        return False
    hard = (Call, Index, Unary, OpaqueExpr)
    return not any(isinstance(e, hard) and not (isinstance(e, Unary) and e.op == "-") for e in walk_expr(s.init))


def _nest(memory: Memory, loops: Sequence[For], body: Block, varying: frozenset[str]) -> Nest | None:
    turns = [memory.turns(loop) for loop in loops]
    counters = [loop.var for loop in loops]
    if len(set(counters)) < len(counters) or not _is_quiet(memory, body):
        return None
    private = {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    private |= {s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None}
    arrays = memory.arrays - private
    written = names_written(body)
    if not written - arrays <= private or set(counters) & written or private & set(counters):
        return None
    if (names_mentioned(body) - private - set(counters)) & varying:
        return None
    heads = frozenset[str]()
    for loop in loops:
        heads |= names_in(loop.start) | names_in(loop.bound)
    if heads & (varying | private | set(counters) | memory.arrays | memory.shared) or not all(map(_counts, loops)):
        return None
    known = [one for one in turns if one is not None]
    touches = _inside(memory, loops, body)
    if len(known) < len(turns) or touches is None or not _fits(memory, known):
        return None
    return Nest(tuple(loops), tuple(known), body, touches) if _write_apart(memory, loops, touches) else None


def _counts(loop: For) -> bool:
    """Whether a loop's counter is a variable of its own that may be set to any of its turns."""
    plain = loop.type is not None and (integer_bytes(loop.type) or 0) >= 4
    down = loop.relation in (">", ">=") and "unsigned" in (loop.type or "")
    pure = not any(isinstance(e, Call | OpaqueExpr) for x in (loop.start, loop.bound) for e in walk_expr(x))
    return plain and pure and not down


def _fits(memory: Memory, turns: Sequence[Turns]) -> bool:
    """Whether several loops' turns can be counted together."""
    if len(turns) == 1:
        return True
    contract = memory.target.contract
    if any(one.text is None or not always(contract, f"({one.text}) >= 0") for one in turns):
        return False
    whole = largest(contract, " * ".join(f"({one.text})" for one in turns))
    return whole is not None and whole <= INT_LIMIT


def _is_quiet(memory: Memory, body: Block) -> bool:
    """Whether what is done in a turn concerns one thread alone, and goes on to the next turn."""
    if contains_barrier(body) or contains_warp_wide(body) or contains_opaque(body) or contains_return(body):
        return False
    if breaks(body) or any(isinstance(s, Declare) and (s.qualifiers or "&" in s.type) for s in walk_stmts(body)):
        return False
    # An element of an array that the turn has for itself may be set; addresses lead anywhere.
    return not any(isinstance(e, Unary) and e.op == "&" for e in walk_exprs(body))


def _inside(memory: Memory, loops: Sequence[For], body: Block) -> tuple[Touch, ...] | None:
    """What a turn touches of shared memory; None where that is not told."""
    touches = memory.touches(body)
    local = {s.name for s in walk_stmts(body) if isinstance(s, Declare) and s.dims}
    if any(not t.name for t in touches):
        return None
    return tuple(replace(t, loops=(*loops, *t.loops)) for t in touches if t.name not in local)


def _write_apart(memory: Memory, loops: Sequence[For], touches: Sequence[Touch]) -> bool:
    """Whether no turn touches what another one writes."""
    for write in (t for t in touches if t.writes):
        for other in touches:
            if not memory.same_memory(write.name, other.name):
                continue
            if write.name != other.name or not _differ(memory, loops, write, other):
                return False
    return True


def _differ(memory: Memory, loops: Sequence[For], one: Touch, other: Touch) -> bool:
    """Whether two accesses are at different elements in any two different turns: what each counter adds is more than
    all that the ones below it add, like the digits of a number."""
    if one.place is None or other.place is None:
        return False
    digits, most, least = list[tuple[str, str | None]](), list[str](), list[str]()
    first, second = one.place, other.place
    inner = {id(loop): loop for loop in (*one.loops[len(loops) :], *other.loops[len(loops) :])}
    for loop in (*reversed(inner.values()), *reversed(loops)):
        a, b = first.coefficient(loop.var), second.coefficient(loop.var)
        turns, dealt = memory.turns(loop), id(loop) not in inner
        if a is None or b is None or turns is None or loop.var in names_written(loop.body) or (dealt and a != b):
            return False
        first = first.without(loop.var) + a * turns.first
        second = second.without(loop.var) + b * turns.first
        for factor in (a, -b) if a != b else (a,) if dealt or a.terms else ():
            step = memory.target.poly_text(factor * constant(turns.step))
            if step is None or (turns.text is None and not dealt):
                return False
            if a == b:
                digits.append((_absolute(step), turns.text))
                continue
            added = f"({step}) * max(({turns.text}) - 1, 0)"
            most.append(f"max({added}, 0)")
            least.append(f"min({added}, 0)")
    rest = memory.target.poly_text(first - second)
    if rest is None:
        return False
    between = f"max({' + '.join([rest, *most])}, -({' + '.join([rest, *least])}))"
    return _as_digits(memory.target.contract, digits, between)


def _absolute(size: str) -> str:
    return f"max({size}, -({size}))"


def _as_digits(contract: Contract, digits: Sequence[tuple[str, str | None]], below: str) -> bool:
    """Whether sums of multiples are different for different digits. ``digits``: what is multiplied, and how many values
    each has; ``below``: what else may lie between two sums."""
    some = [d for d in digits if d[1] is None or not always(contract, f"({d[1]}) <= 1")]
    some.sort(key=lambda d: largest_timed(contract, d[0]) or 0)
    for rank, (step, count) in enumerate(some):
        if not always(contract, f"{step} > {below}"):
            return False
        if count is None:
            return rank == len(some) - 1
        below += f" + {step} * max(({count}) - 1, 0)"
    return True
