"""What threads have in common of a kernel's work, as a share of it: whether it pays to do several together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fsr.analysis.common_values import CommonValues
from fsr.source.form import For, If, Scope, Stmt, While
from fsr.source.walk import Block, exprs_of, jumps, walk_expr, walk_stmts
from fsr.transform.jam.terms import weight_of, weights

_LOOP = 2  # a turn's own instructions
_TURNS = 16  # of a loop of which nothing is known
_MOST_TURNS = 4096
_LEAST_SHARE = 0.12
_DEEPEST = 3  # conditions of single threads, each with two versions of what it guards


@dataclass(frozen=True)
class Work:
    """About how many instructions: those that threads have in ``common`` if they are done together, and those of each
    ``apart``; ``loops``: whether any loop is gone through together."""

    common: float = 0.0
    apart: float = 0.0
    loops: bool = False

    def __add__(self, other: Work) -> Work:
        return Work(self.common + other.common, self.apart + other.apart, self.loops or other.loops)

    def times(self, turns: float) -> Work:
        """The work of as many turns."""
        return Work(self.common * turns, self.apart * turns, self.loops)

    @property
    def single(self) -> Work:
        """The same, where it is done for one thread after the other."""
        return Work(0.0, self.common + self.apart)

    @property
    def share(self) -> float:
        """Of what is in common."""
        return self.common / max(self.common + self.apart, 1.0)

    @property
    def worth(self) -> bool:
        """Whether doing it together may pay."""
        return self.loops and self.share >= _LEAST_SHARE

    def speedup(self, factor: int) -> float:
        """Of ``factor`` threads together, by instructions."""
        return 1.0 / (1.0 - self.share + self.share / factor)


@dataclass(frozen=True)
class Weigher:
    """``turns``: how often a loop is gone through, where that is known."""

    common: CommonValues
    turns: Callable[[For], int | None]

    def work(self, stmts: Block, depth: int = 0) -> Work:
        """Of statements to which all threads come."""
        return sum((self._stmt(s, depth) for s in stmts), Work())

    def side(self, s: If, depth: int = 0) -> Block | None:
        """The statements, of those that a condition of single threads guards, that those who come there do together."""
        if depth >= _DEEPEST:
            return None
        return next((block for block in (s.then, s.orelse) if self.work(block, depth + 1).worth), None)

    def rounds(self, s: For | While) -> bool:
        """Whether it may pay to go through a loop together for as long as all threads do: one that none leaves within
        a turn."""
        return not jumps(s.body) and self.work(s.body).worth

    def _stmt(self, s: Stmt, depth: int) -> Work:
        common = self.common
        own = Work()
        for e in exprs_of(s):
            shared, apart = weights(e, common)
            own += Work(shared, apart)
        match s:
            case For() | While():
                known = self.turns(s) if isinstance(s, For) else None
                turns = min(_TURNS if known is None else known, _MOST_TURNS)
                inner = (own + Work(_LOOP) + self.work(s.body, depth)).times(turns)
                if not common.together(s):
                    return inner if self.rounds(s) else inner.single
                return inner + Work(loops=_shares(s.body, common))
            case If(test, then, orelse):
                if common(test):
                    return own + self.work(then, depth) + self.work(orelse, depth)
                side = self.side(s, depth)
                for block in (then, orelse):
                    inner = self.work(block, depth + 1)
                    own += inner if block is side else inner.single
                return own
            case Scope(body):
                return own + self.work(body, depth)
        return own


def _shares(body: Block, common: CommonValues) -> bool:
    """Whether threads have something in common in a loop's body that costs them: a load, a division, a function."""
    return any(weight_of(x) and common(x) for s in walk_stmts(body) for e in exprs_of(s) for x in walk_expr(e))
