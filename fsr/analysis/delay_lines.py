"""Delay lines: variables that a loop hands on from turn to turn, none of which comes back to itself.

``a = b; b = c; c = u[i + 3];`` hands on what was read three turns ago at most: whatever the variables held, after three
turns they are what the last three turns made of them. (A finite impulse response; a sum that goes on, or a filter with
feedback, is no delay line.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from fsr.analysis.made_of import MEMORY, NOTHING, Around, Made, Turn, Unclear, keys_of
from fsr.source.form import Expr, For, If
from fsr.source.walk import walk_stmts

_MOST_TESTS = 4  # that are the same in all turns, each taken for true and false


@dataclass(frozen=True)
class DelayLines:
    """``needed``: the variables that must be right after the last of some turns that fill the lines, after the one
    before it, and so on; as many as turns are needed, so that whatever was before does not matter."""

    needed: tuple[frozenset[str], ...]

    @property
    def depth(self) -> int:
        """After how many turns nothing is left of what the variables held."""
        return len(self.needed)


def delay_lines(loop: For, around: Around) -> DelayLines | None:
    """The loop's delay lines; None where a variable depends on what it was itself, or that cannot be told."""
    tests: list[Expr] = []
    for s in walk_stmts(loop.body):
        if isinstance(s, If) and s.test not in tests and around.same(s.test, NOTHING):
            tests.append(s.test)
    made: dict[str, Made] = {}
    seen: set[str] = set(_ends(around))
    try:
        for chosen in product((True, False), repeat=len(tests[:_MOST_TESTS])):
            turn = Turn(loop, around, dict(zip(tests, chosen, strict=False)))
            turn.run(loop.body)
            seen |= turn.seen
            for key, of in turn.left().items():
                made[key] = made.get(key, NOTHING) | of
    except Unclear:
        return None
    return _lines(made, seen)


def _ends(around: Around) -> Iterable[str]:
    for name in around.behind:
        if name in around.locals:
            yield from keys_of(around.locals[name], around)
        yield around.roots.get(name, name)


def _lines(made: Mapping[str, Made], seen: set[str]) -> DelayLines | None:
    """The lines among variables that are ``made`` of others each turn, of which some are ``seen``."""
    live = {k for k in seen if k in made}
    waiting = list(live)
    while waiting:
        more = {k for k in made[waiting.pop()] if k in made} - live
        live |= more
        waiting += more
    if any(MEMORY in made[k] for k in live):
        return None
    needed, now = list[frozenset[str]](), frozenset(live)
    while now:
        if len(needed) > len(live):
            return None  # one comes back to itself
        needed.append(frozenset(k.split("[")[0].split(".")[0] for k in now))
        now = frozenset(k for one in now for k in made[one] if k in made)
    return DelayLines(tuple(needed))
