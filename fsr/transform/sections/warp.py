"""A section as lanes of one warp do it together: loops dealt out by lane, what turns hand on put together by shuffles,
stores by one lane (:mod:`fsr.transform.lanes.work`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.effects import Unclear
from fsr.analysis.types import FLOATING, integer_bytes, resolved
from fsr.records import Candidate
from fsr.source.form import (
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Param,
    Scope,
    Stmt,
    While,
    number,
)
from fsr.source.mapping import map_exprs, map_stmts, replace_stmt, substitute
from fsr.source.walk import (
    BARRIER,
    Block,
    blocks_of,
    fresh,
    names_assigned,
    names_mentioned,
    variables,
    walk_stmts,
)
from fsr.transform.details.register_promotion import Kept
from fsr.transform.lanes.loops import Loops
from fsr.transform.lanes.work import Work
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import with_launch
from fsr.transform.rows.share import Group
from fsr.transform.sections.memory import meeting
from fsr.transform.sections.opened import Opened, distinct, opened
from fsr.transform.sections.pieces import around
from fsr.transform.sections.places import Section, Together
from fsr.transform.sizes import always
from fsr.transform.target import Target

WARP = 32
LEAST_TURNS = 8
_X = Member(Name("threadIdx"), "x")
_ALL = Literal("0xffffffffu")


@dataclass(frozen=True)
class ForWarp:
    """``turn``: goes through the threads that did it, where they are several; ``lead``: what the thread had; ``turns``:
    how many each loop has that is dealt out, at the timed sizes; ``single``: variables that a block shares; ``first``,
    ``last``: whether all have to meet before and after it."""

    opened: Opened
    turn: For | None
    lead: Block
    work: Work
    turns: tuple[int, ...]
    single: frozenset[str]
    first: bool
    last: bool

    def text(self, group: Group, mask: Expr | None, taken: set[str]) -> Block:
        """All statements in the section's place."""
        body = with_single_back(self.work.body(group, mask, taken), self.single)
        inner: Block = (*self.lead, *body)
        words = "a warp does what one thread did"
        place: Stmt = If(_in_first_warp(self.opened), inner)
        if self.turn is not None:
            words, place = "a warp for each of the threads that did this", replace(self.turn, body=inner)
        first, last = (((BARRIER,) if meets else ()) for meets in (self.first, self.last))
        return (*first, Comment(f"// {words}"), place, *last)


def for_warp(target: Target, together: Together, section: Section, taken: set[str]) -> ForWarp | None:
    """The section for a warp; None where that cannot be shown to be the same, or nothing of it can be dealt out."""
    turn = _turn(target, section, taken)
    if section.alone.count is not None and turn is None:
        return None
    if section.alone.count is None and any(section.alone.ids.values()):
        return None  # of another warp than the first
    one = opened(target, together, section, taken, turn)
    if one is None or one.memory.volatile or any(isinstance(s, Declare) and s.dims for s in walk_stmts(one.body)):
        return None
    if one.test is not None:
        one = replace(one, body=(If(one.test, one.body),), test=None)
    loose = loose_in(one, together)
    after = _looked_at_after(target.kernel.body, section.stmt) or frozenset()
    outer = names_assigned(one.body) - set(variables(one.body)) - one.memory.shared - one.memory.arrays
    if loose is None or outer & after or (loose and turn is not None):
        return None
    told = {name: Name(taking(f"{name}_one", taken)) for name in sorted(loose)}
    sent = [Declare(t, told[n].text, Call(Name("__shfl_sync"), (_ALL, Name(n), number(0)))) for n, t in loose.items()]
    one = replace(one, body=substitute(one.body, told))
    sides = _sides(one)
    if sides is None:
        return None
    single = one.memory.shared - one.memory.arrays
    lead: Block = (*one.lead, *sent)
    found = list[ForWarp]()
    try:
        for loops in forms(target, one, turn, lead):
            shared = tuple(loops.outermost(loops.body))
            turns = tuple(turns_of(loops, s.loop) for s in shared)
            if max(turns, default=0) >= LEAST_TURNS:
                work = Work(loops, shared, repeated=True)
                found.append(ForWarp(one, turn, lead, work, turns, single, *sides))
    except Unclear:
        return None
    return max(found, key=lambda way: sum(way.turns), default=None)


def forms(target: Target, one: Opened, turn: For | None, lead: Block) -> Iterator[Loops]:
    """The section's loops, in forms in which they may be shared. Raises Unclear."""
    single = one.memory.shared - one.memory.arrays

    def passed(body: Block) -> Target:
        inner: Block = (*lead, *with_single_back(body, single))
        place = Scope(inner) if turn is None else replace(turn, body=inner)
        whole = _with_pointers_apart(replace_stmt(target.kernel.body, one.section.stmt, (place,)), target)
        return _with_shared_passed(target, whole, single)

    written = _with_single_told(one.body, single)
    kept = Kept(passed(written)).block(written)  # what turns add to in memory, in variables
    for body in dict.fromkeys((written, kept)):
        yield Loops(passed(body), body)


def turns_of(loops: Loops, loop: For) -> int:
    """How many a loop has, at the sizes that are timed; as many as a warp has lanes where data tells."""
    extents = {("blockDim", axis): number(n) for axis, n in zip("xyz", loops.target.block or (), strict=False)}
    (told,) = with_ids((loop,), extents)
    assert isinstance(told, For)
    found = loops.turns(told)
    return WARP if found is None else found


# ---------------------------------------------------------------- who does it


def _turn(target: Target, section: Section, taken: set[str]) -> For | None:
    """The loop in which each warp goes through some of the threads that did the section."""
    count, threads = section.alone.count, target.threads or 0
    if count is None:
        return None
    size = target.poly_text(target.known.poly(count, target.numbers))
    if size is None or not always(target.contract, f"({size}) <= {threads // 4}"):
        return None  # they are many, or more than there are
    first = Binary("/", _X, number(WARP))
    return For("int", taking("which", taken), first, "<", count, number(threads // WARP), ())


def _in_first_warp(one: Opened) -> Expr:
    test: Expr = Binary("<", _X, number(WARP))
    for axis, size in zip("yz", one.memory.target.launch.block[1:], strict=True):
        if size != "1":
            test = Binary("&&", test, Binary("==", Member(Name("threadIdx"), axis), number(0)))
    return test


def taking(wanted: str, taken: set[str]) -> str:
    name = fresh(wanted, taken)
    taken.add(name)
    return name


# ---------------------------------------------------------------- what it reads


def loose_in(one: Opened, together: Together) -> Mapping[str, str] | None:
    """The variables of before that only the one thread has as it needs them, by type; None where one of them cannot be
    told to others."""
    memory = one.memory
    needed = names_mentioned(one.body) - {*variables(one.body), *(s.name for s in one.lead)}
    if needed & memory.private:
        return None
    found = dict[str, str]()
    for name in sorted(needed & together.varying - memory.shared - memory.arrays):
        type_ = memory.target.known.types.get(name, "").removeprefix("const ")
        plain = resolved(type_, memory.target.aliases)
        if plain not in FLOATING and (integer_bytes(plain) or 0) < 4:
            return None
        found[name] = type_
    return found


def _looked_at_after(block: Block, stmt: Stmt) -> frozenset[str] | None:
    """The names that may be looked at once a statement is done; None where it is not in the block."""
    for at, s in enumerate(block):
        if s is stmt:
            return names_mentioned(block[at + 1 :])
        for inner in blocks_of(s):
            found = _looked_at_after(inner, stmt)
            if found is not None:
                if isinstance(s, For | While):
                    found |= names_mentioned((s,)) - {x.name for x in s.body if isinstance(x, Declare)}
                return found | names_mentioned(block[at + 1 :])
    return None


def _sides(one: Opened) -> tuple[bool, bool] | None:
    """Whether all have to meet before and after the section, as lanes read what the one thread did; None where no
    barrier tells in which order threads touch what they read."""
    memory = one.memory
    read = [replace(t, writes=False) for t in memory.touches(one.body) if t.reads]
    before, after = ([t for a in side for t in around(one, a)] for side in (one.section.before, one.section.after))
    ahead, behind = meeting(memory, before, read), meeting(memory, read, after)
    if any(not a.own for a, _ in ahead) or any(not b.own for _, b in behind):
        return None
    return bool(ahead), bool(behind)


# ---------------------------------------------------------------- as a thread's own work


def _with_shared_passed(target: Target, body: Block, single: frozenset[str]) -> Target:
    """The kernel with that body, with shared arrays as buffers that it is passed, as whoever shares loops knows
    memory."""
    arrays = [s for s in walk_stmts(body) if isinstance(s, Declare) and "__shared__" in s.qualifiers]
    if any(len(s.dims) > 1 or "*" in s.type for s in arrays):
        raise Unclear
    params = tuple(Param(f"{s.type} *", s.name) for s in {s.name: s for s in arrays}.values())

    def change(s: Stmt) -> Stmt | Block:
        return () if isinstance(s, Declare) and "__shared__" in s.qualifiers else s

    told = _with_single_told(map_stmts(body, change), single)
    kernel = replace(target.kernel, params=(*target.kernel.params, *params), body=told)
    names = tuple(f"shared {p.name}" for p in params)
    plan = with_launch(target.candidate.plan, target.position, lambda old: replace(old, args=(*old.args, *names)))
    candidate: Candidate = replace(target.candidate, plan=plan)
    return replace(target, kernel=kernel, candidate=candidate)


def _with_pointers_apart(body: Block, target: Target) -> Block:
    """Statements with a name for each local pointer, as each of several blocks may have its own of one name."""
    counts = Counter(s.name for s in walk_stmts(body) if isinstance(s, Declare) and "*" in s.type)
    again = frozenset(name for name, count in counts.items() if count > 1)
    return distinct(body, {}, again, {*target.names, *names_mentioned(body)}) if again else body


def _with_single_told(body: Block, single: frozenset[str]) -> Block:
    """Statements with shared variables as arrays of one element."""

    def change(e: Expr) -> Expr:
        return Index(e, number(0)) if isinstance(e, Name) and e.text in single else e

    return map_exprs(body, change)


def with_single_back(body: Block, single: frozenset[str]) -> Block:
    def change(e: Expr) -> Expr:
        match e:
            case Index(Name(text) as name, Literal("0")) if text in single:
                return name
        return e

    return map_exprs(body, change)
