"""A kernel's disguise comes off: it is written anew from what it computes, and other actions go on from there.

What people write differently (threads renamed, loops turned round, staged through shared memory, an index taken apart
by division) is the same computation. Written as plain loops, one thread a point or a row, it is what the structural
actions recognise. This action offers what they offer on the plain form and not on the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.computation.computation import Computation
from fsr.contract.model import Contract
from fsr.records import Candidate
from fsr.source.parse import parse_kernels
from fsr.transform.plain.c_text import LONGEST_LINE, NotPlain
from fsr.transform.plain.forming import formed, with_before
from fsr.transform.plain.kernel import Plain, plain_kernel
from fsr.transform.plain.scatter import apart, scattered_kernel
from fsr.transform.plain.whole_plan import whole
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Action, Move, Subject
from fsr.transform.target import Target, targets

_PLAIN_GAIN = 1.05
_ITSELF = "itself"


@dataclass(frozen=True)
class Restate:
    """The action; ``inner``: the actions whose moves are offered on the plain form."""

    inner: tuple[Action, ...]
    name: str = "restate"
    aims_at: frozenset[str] = frozenset(
        ["uncoalesced", "latency", "occupancy", "bandwidth", "compute", "atomics", "shared-conflicts", "instructions"]
    )

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The plain form itself, and each move on it of an action that the original does not offer."""
        plain = _plain(subject)
        if plain is None:
            return
        yield Move(self.name, "plan", (("as", _ITSELF),), _PLAIN_GAIN)
        for action, move in _further(self.inner, subject, plain):
            if not any(True for _ in action.moves(subject)):
                yield Move(self.name, "plan", (("as", move.name),), move.gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """See Action.apply."""
        plain = _plain(subject)
        assert plain is not None
        result = plain.candidate
        wanted = move.param("as")
        if wanted != _ITSELF:
            action, inner = next((a, m) for a, m in _further(self.inner, subject, plain) if m.name == wanted)
            result = action.apply(plain, inner)
        return replace(result, actions=(*subject.candidate.actions, move.name))


def _further(inner: Sequence[Action], subject: Subject, plain: Subject) -> list[tuple[Action, Move]]:
    return [(action, move) for action in inner for move in action.moves(plain)]


def _plain(subject: Subject) -> Subject | None:
    """The original's plain form as a subject; None where there is none, or for other candidates than the original."""
    computation = subject.free
    if computation is None or subject.keep_launch:
        return None
    written = _written(subject.candidate, subject.contract, computation)
    if written is None:
        return None
    return replace(subject, candidate=written, kernels=parse_kernels(written.source))


@lru_cache(maxsize=16)
def _written(candidate: Candidate, contract: Contract, computation: Computation) -> Candidate | None:
    subject = whole(Subject(candidate, parse_kernels(candidate.source), contract))
    target = None if subject is None else next(iter(targets(subject)), None)
    if target is None:
        return None
    parts = apart(computation)
    try:
        if parts is None:
            return _as_plain(target, plain_kernel(computation, target))
        first, (most, *others) = parts
        made = _as_plain(target, scattered_kernel(most, target, first))
        if made is None:
            return None
        for one in others:
            made = with_before(made, target, scattered_kernel(one, target, first), "more")
        if first is not None:
            made = with_before(made, target, plain_kernel(first, target), "start")
        return made
    except (NotPlain, KeyError):
        return None


def _as_plain(target: Target, plain: Plain) -> Candidate | None:
    """The candidate with the plain kernel in place of the target's; None where its text is too long."""
    if any(len(line) > LONGEST_LINE for line in plain.body.split("\n")):
        return None
    form, args = formed(target, plain)
    move = Move("restate", "plan", (("as", _ITSELF),))
    return rewritten(
        target, move, form,
        launch=lambda old: replace(old, grid=plain.grid, block=plain.block, shared_bytes="0", args=(*old.args, *args)),
    )  # fmt: skip
