"""What earlier runs say of a move before it is tried: how far its action's guess was off on kernels that are alike.

A kernel-weighted mean (Nadaraya 1964, Watson 1964) of what the guess missed by, in log speed-up, shrunk towards nothing
as a normal prior would. The weight of an earlier kernel falls with the mean difference of its traits; within a kernel,
that of a move falls with the difference of its parameters, and of what it was made on. However often a move was tried
on a kernel, it is one kernel's word. Only the order of what is tried depends on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fsr import __version__
from fsr.records import Basis, Json
from fsr.search.experience import Experience, Gained, Params, Where
from fsr.search.policy import Belief
from fsr.search.traits import Traits

# NEAR and GUESS: chosen among a dozen by leaving out one of the kernels that benchmarks/learning.py learns from.
NEAR = 0.1  # mean difference of traits at which the word of another kernel counts exp(-1) of one's own
GUESS = 0.05  # what an action's guess counts, in kernels of the same traits, measured
PREDICTED, ELSEWHERE, EARLIER = 0.3, 0.7, 0.5  # what is predicted counts, or of other hardware, or of another fsr
MOST_KERNELS = 48  # whose word is taken: the nearest
LEAST = 1e-3  # a kernel that counts less is not listened to
OTHER_WORD, DOUBLED = 0.3, 0.5  # weight of a move for each parameter that differs: in a word, by a factor of two
OTHER_CAUSE, OTHER_PLACE = 0.6, 0.5  # where something else held its parent back; where one of the two is the original
_RANGES: Mapping[str, float] = {
    "points": 8.0, "threads": 8.0, "fold length": 4.0, "reuse": 4.0, "intensity": 3.0, "block": 3.0, "launches": 3.0,
    "room": 3.0, "dimensions": 2.0, "loop depth": 2.0, "fold dimensions": 2.0, "statements": 2.0,
}  # fmt: skip  # a difference of so much is a whole one; of flags it is 1
_UNKNOWN = 0.5  # the difference of a trait that one of two kernels is not known by


def difference(a: Traits, b: Traits) -> float:
    """Mean difference of two kernels' traits: 0 (alike in all) to 1."""
    names = sorted({*a, *b})
    return sum(_apart(name, a.get(name), b.get(name)) for name in names) / max(len(names), 1)


def _apart(name: str, a: float | str | None, b: float | str | None) -> float:
    if a is None or b is None:
        return _UNKNOWN
    if isinstance(a, str) or isinstance(b, str):
        first, second = set(str(a).split("+")), set(str(b).split("+"))
        return 1.0 - len(first & second) / len(first | second)
    return min(1.0, abs(a - b) / _RANGES.get(name, 1.0))


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An earlier run and what its word counts: 1 for one's own kernel, measured here, by the same fsr."""

    experience: Experience
    weight: float


@dataclass(slots=True)
class Prior:
    """The word of earlier runs for one kernel; a function of its neighbours alone."""

    neighbours: tuple[Neighbour, ...]
    _by_action: dict[str, list[tuple[Neighbour, list[Gained]]]] = field(default_factory=dict)
    _known: dict[Where, Belief | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for neighbour in self.neighbours:
            own: dict[str, list[Gained]] = {}
            for move in neighbour.experience.moves:
                own.setdefault(move.where.action, []).append(move)
            for action, moves in own.items():
                self._by_action.setdefault(action, []).append((neighbour, moves))

    def of(self, where: Where) -> Belief | None:
        """What is thought of a move; None where nobody has a word."""
        if where not in self._known:
            self._known[where] = self._found(where)
        return self._known[where]

    def _found(self, where: Where) -> Belief | None:
        total = off = 0.0
        measured: Counter[bool] = Counter()
        for neighbour, moves in self._by_action.get(where.action, ()):
            alike = [_alike(where, move.where) * math.sqrt(move.count) for move in moves]
            missed = sum(w * (m.gain - m.guess) for w, m in zip(alike, moves, strict=True)) / sum(alike)
            weight = neighbour.weight * max(_alike(where, move.where) for move in moves)
            total += weight
            off += weight * missed
            measured[neighbour.experience.basis == Basis.MEASURED.value] += weight >= LEAST
        if not total:
            return None
        return Belief(off / (GUESS + total), total / GUESS, measured.total(), measured[True])

    def to_json(self) -> list[Json]:
        """All that it depends on."""
        return [{"weight": n.weight, "experience": n.experience.to_json()} for n in self.neighbours]

    @classmethod
    def from_json(cls, data: Iterable[Any]) -> Prior:
        """The inverse. Raises ValueError, KeyError or TypeError for what is none."""
        return cls(tuple(Neighbour(Experience.from_json(n["experience"]), float(n["weight"])) for n in data))


def prior(traits: Traits, basis: str, hardware: str, experience: Sequence[Experience]) -> Prior:
    """The word of earlier runs on a kernel of these traits; the order of ``experience`` does not matter."""
    runs = Counter((e.kernel, e.basis, e.hardware) for e in experience)
    found = [
        Neighbour(_heard(e, basis), weight / runs[e.kernel, e.basis, e.hardware])
        for e in experience
        if (weight := _weight(traits, basis, hardware, e)) >= LEAST
    ]
    found.sort(key=lambda n: (-n.weight, n.experience.kernel, repr(n.experience)))
    return Prior(tuple(found[:MOST_KERNELS]))


def _heard(experience: Experience, basis: str) -> Experience:
    """What of an experience a run on that basis takes: what left a prediction as it was says nothing of a clock."""
    if basis == experience.basis or basis == Basis.PREDICTED.value:
        return experience
    return replace(experience, moves=tuple(m for m in experience.moves if m.gain != 0.0))


def _weight(traits: Traits, basis: str, hardware: str, experience: Experience) -> float:
    weight = math.exp(-difference(traits, experience.traits) / NEAR)
    weight *= PREDICTED if experience.basis == Basis.PREDICTED.value else 1.0
    weight *= ELSEWHERE if experience.basis == basis and experience.hardware != hardware else 1.0
    return weight * (EARLIER if experience.fsr != __version__ else 1.0)


def _alike(a: Where, b: Where) -> float:
    """What a move says of another one of the same action: 1 of the same, never 0."""
    weight = _same_params(a.params, b.params)
    weight *= OTHER_CAUSE if a.bottleneck != b.bottleneck else 1.0
    return weight * (OTHER_PLACE if a.first != b.first else 1.0)


def _same_params(a: Params, b: Params) -> float:
    first, second = dict(a), dict(b)
    weight = 1.0
    for key in sorted({*first, *second}):
        one, other = first.get(key), second.get(key)
        if one == other:
            continue
        if isinstance(one, int) and isinstance(other, int) and one > 0 and other > 0:
            weight *= DOUBLED ** abs(math.log2(one / other))
        else:
            weight *= OTHER_WORD
    return max(weight, LEAST)
