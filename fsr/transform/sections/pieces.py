"""What a section is made of: loops to deal out, what its thread does by itself, and where all have to meet between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fsr.source.form import Comment, Declare, Expr, For, If, Scope, Stmt
from fsr.source.mapping import replace_stmt
from fsr.source.walk import Block, names_assigned, names_in, names_mentioned, names_written, variables, walk_stmts
from fsr.transform.sections.alone import section_of
from fsr.transform.sections.memory import Memory, Touch, meeting
from fsr.transform.sections.nests import Nest, nest_of
from fsr.transform.sections.opened import Opened
from fsr.transform.sections.places import Around

LEAST_TURNS = 4


@dataclass(frozen=True)
class Own:
    """What the thread does by itself."""

    stmts: Block


@dataclass(frozen=True)
class Dealt:
    """Loops whose turns all threads share."""

    nest: Nest


@dataclass(frozen=True)
class Common:
    """What all threads compute."""

    stmt: Stmt


@dataclass(frozen=True)
class Branch:
    """A condition that is the same for all threads."""

    test: Expr
    then: tuple[Piece, ...]
    orelse: tuple[Piece, ...]


@dataclass(frozen=True)
class Meet:
    """All threads of the block wait for one another."""


Piece = Own | Dealt | Common | Branch | Meet


@dataclass(frozen=True)
class Shared:
    """A section in pieces. ``first``, ``last``: whether all have to meet before and after it."""

    opened: Opened
    pieces: tuple[Piece, ...]
    first: bool
    last: bool

    @property
    def nests(self) -> list[Nest]:
        """Those whose turns are dealt out."""
        return list(_nests(self.pieces))


def shared(opened: Opened) -> Shared | None:
    """The section with its loops dealt out; None where there is none, or where no barrier tells in which order threads
    touch what it touches."""
    parts = _Parts(opened)
    found = parts.of(opened.body)
    nests = list(_nests(found))
    if not nests or not _declared_where_used(found):
        return None
    memory, dealt = opened.memory, [t for nest in nests for t in nest.touches]
    sides = opened.section.before, opened.section.after
    before, after = ([t for a in side for t in around(opened, a)] for side in sides)
    ahead, behind = meeting(memory, before, dealt), meeting(memory, dealt, after)
    # Others' values with no barrier between: what is meant is not what is written.
    if any(a.writes and not a.own and b.reads for a, b in ahead):
        return None
    if any(a.writes and b.reads and not b.own for a, b in behind):
        return None
    pieces, _ = _ordered(memory, found, [])
    return Shared(opened, tuple(pieces), bool(ahead), bool(behind))


def _nests(pieces: Sequence[Piece]) -> Iterator[Nest]:
    for piece in pieces:
        match piece:
            case Dealt(nest):
                yield nest
            case Branch(_, then, orelse):
                yield from _nests((*then, *orelse))


@dataclass
class _Parts:
    """``own``: names whose values the one thread alone has."""

    opened: Opened
    own: set[str] = field(default_factory=set)

    @property
    def _varying(self) -> frozenset[str]:
        return self.opened.varying | self.own

    def of(self, block: Block) -> list[Piece]:
        """The pieces of statements that follow one another."""
        found = list[Piece]()
        for s in block:
            if isinstance(s, Scope):
                found += self.of(s.body)
                continue
            new = self._piece(s)
            match found[-2:], new:
                case [*_, Own(stmts)], Own(more):
                    found[-1] = Own((*stmts, *more))
                case [Own(stmts), Common(Comment() as comment)], Own(more):
                    found[-2:] = [Own((*stmts, comment, *more))]
                case _:
                    found.append(new)
        return found

    def _piece(self, s: Stmt) -> Piece:
        memory = self.opened.memory
        match s:
            case Comment():
                return Common(s)
            case Declare() if self._is_common(s):
                return Common(s)
            case For():
                nest = nest_of(memory, s, self._varying)
                if nest is not None and nest.timed(memory) >= LEAST_TURNS:
                    return Dealt(nest)
            case If(test, then, orelse, False) if self._is_same(test) and _has_loop((*then, *orelse)):
                before = set(self.own)
                branch = Branch(test, tuple(self.of(then)), tuple(self.of(orelse)))
                if list(_nests((branch,))):
                    return branch
                self.own = before
        through = memory.arrays | memory.shared
        self.own |= {*variables((s,)), *(names_assigned((s,)) - memory.shared), *(names_written((s,)) - through)}
        return Own((s,))

    def _is_same(self, e: Expr) -> bool:
        names = names_in(e)
        return self.opened.together(e) and not names & (self._varying | self.opened.memory.shared)

    def _is_common(self, s: Declare) -> bool:
        plain = s.init is not None and not s.dims and "&" not in s.type
        changed = names_assigned(self.opened.body)
        return plain and s.init is not None and s.name not in changed and self._is_same(s.init)


def _has_loop(body: Block) -> bool:
    return any(isinstance(s, For) for s in walk_stmts(body))


def _declared_where_used(pieces: Sequence[Piece]) -> bool:
    """Whether no piece of the one thread's own uses a variable that another one declares."""
    seen = set[str]()
    for stmts in _owned(pieces):
        if names_mentioned(stmts) & seen:
            return False
        seen |= set(variables(stmts))
    return True


def _owned(pieces: Sequence[Piece]) -> Iterator[Block]:
    for piece in pieces:
        match piece:
            case Own(stmts):
                yield stmts
            case Branch(_, then, orelse):
                yield from _owned((*then, *orelse))


# ---------------------------------------------------------------- who meets whom


def around(opened: Opened, around: Around) -> list[Touch]:
    """What is touched before or after the section, with what its own thread alone touches marked."""
    memory, rest, own = opened.memory, around.stmts, list[Stmt]()
    guards = [s for s in walk_stmts(rest) if isinstance(s, If)]
    for s in guards:
        found = section_of(memory.target, s)
        if found is not None and found[0].ids == opened.section.alone.ids:
            rest = replace_stmt(rest, s, ())
            own.append(s)
    touches = memory.touches(tuple(own), own=True, again=around.again)
    return [*touches, *memory.touches(rest, again=around.again)]


def _touches(memory: Memory, piece: Piece) -> list[Touch]:
    match piece:
        case Own(stmts):
            return memory.touches(stmts, own=True)
        case Dealt(nest):
            return list(nest.touches)
        case Branch(_, then, orelse):
            return [t for inner in (*then, *orelse) for t in _touches(memory, inner)]
    return []


def _ordered(memory: Memory, pieces: Sequence[Piece], before: list[Touch]) -> tuple[list[Piece], list[Touch]]:
    """The pieces with a barrier wherever one may touch what another one wrote, and what is touched since the last."""
    found, since = list[Piece](), list(before)
    for piece in pieces:
        now = _touches(memory, piece)
        if any(not (a.own and b.own) for a, b in meeting(memory, since, now)):
            found.append(Meet())
            since = []
        if isinstance(piece, Branch):
            then, one = _ordered(memory, piece.then, since)
            orelse, other = _ordered(memory, piece.orelse, since)
            piece, now = Branch(piece.test, tuple(then), tuple(orelse)), [*one, *other]
        found.append(piece)
        since += now
    return found, since
