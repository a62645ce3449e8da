"""A move on several kernels of a plan at once: what is worth trying on one of six launches is on the five like it, and
a search that tries them one by one is out of time before it has been through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.transform.instantiated import kernels_of
from fsr.transform.protocol import Action, Move, Subject

REGION = "kernels"
_ONE = "kernel:"
_SOONER = 1.05  # than on one of them, which is a part of the time


@dataclass(frozen=True, slots=True)
class OnAllKernels:
    """An action that offers each move that it has for two kernels or more, with the same parameters, for all of these
    together too."""

    action: Action

    @property
    def name(self) -> str:
        return self.action.name

    @property
    def aims_at(self) -> frozenset[str]:
        return self.action.aims_at

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The action's, and behind them those of several kernels, each with the best of the guesses."""
        alike: dict[tuple[tuple[str, int | str], ...], list[Move]] = {}
        for move in self.action.moves(subject):
            yield move
            if len(subject.kernels) > 1 and _whole(move.region):
                alike.setdefault(move.params, []).append(move)
        for params, moves in alike.items():
            if len(moves) > 1:
                yield Move(self.name, REGION, params, _SOONER * max(m.gain for m in moves))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate that the action makes; of a move on several kernels, one kernel after the other, as far as it
        still has the move for them."""
        if move.region != REGION:
            return self.action.apply(subject, move)
        before, now = subject.candidate.actions, subject
        regions = [m.region for m in self.action.moves(subject) if _whole(m.region) and m.params == move.params]
        for region in dict.fromkeys(regions):
            own = next((m for m in self.action.moves(now) if (m.region, m.params) == (region, move.params)), None)
            if own is not None:
                made = self.action.apply(now, own)
                now = replace(now, candidate=made, kernels=kernels_of(made.source))
        return replace(now.candidate, actions=(*before, move.name))


def _whole(region: str) -> bool:
    """Whether a region is one kernel of several, and no part of it."""
    return region.startswith(_ONE) and "." not in region
