"""What a search leaves for later ones: what each move gained on a kernel of such traits. No text of the source."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fsr import __version__
from fsr.records import Json, Status
from fsr.search.defects import DETERMINISTIC
from fsr.search.policy import FAILURE, bottlenecks_of
from fsr.search.proposal import Trial
from fsr.search.traits import Traits
from fsr.transform.protocol import Move

FORMAT = 1  # of what is kept: raised when a field changes its meaning; what has another is not read
MOST_MOVES = 256  # kept of one run: those that were tried most often, then the earliest
_INNER = re.compile(r"([\w-]+)@[^\[]*(?:\[(.*)\])?")

Params = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class Where:
    """A move without the places that it has in a source: its action, its parameters (of a move that makes another one,
    that one's too), whether it was made on the original, and what held that back, '' where nobody looked."""

    action: str
    params: Params
    first: bool
    bottleneck: str


@dataclass(frozen=True, slots=True)
class Gained:
    """``guess``: the log speed-up that the action guessed, ``gain``: what came of it, both means over ``count`` trials,
    of which ``failed`` were not right (each counts as FAILURE)."""

    where: Where
    guess: float
    gain: float
    count: int = 1
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Experience:
    """What one run learned. kernel: a digest. basis: 'measured' or 'predicted'. hardware: of the device, by its key,
    or the target. fsr: the version whose moves they are."""

    kernel: str
    traits: Traits
    basis: str
    hardware: str
    moves: tuple[Gained, ...]
    fsr: str = __version__

    def to_json(self) -> dict[str, Json]:
        """As it is stored."""
        moves: list[Json] = [
            [m.where.action, [list(p) for p in m.where.params], m.where.first, m.where.bottleneck,
             m.guess, m.gain, m.count, m.failed] for m in self.moves
        ]  # fmt: skip
        return {
            "format": FORMAT, "kernel": self.kernel, "traits": dict(self.traits), "basis": self.basis,
            "hardware": self.hardware, "fsr": self.fsr, "moves": moves,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Experience:
        """The inverse. Raises ValueError, KeyError or TypeError for what is none, or of another format."""
        if data["format"] != FORMAT:
            raise ValueError(f"experience of format {data['format']}; this fsr reads {FORMAT}")
        moves = tuple(
            Gained(Where(str(action), tuple((str(k), v) for k, v in params), bool(first), str(cause)),
                   float(guess), float(gain), int(count), int(failed))
            for action, params, first, cause, guess, gain, count, failed in data["moves"]
        )  # fmt: skip
        return cls(data["kernel"], dict(data["traits"]), data["basis"], data["hardware"], moves, data["fsr"])


def where(move: Move, parent: Trial) -> Where:
    """What a move on a trial is to whoever knows neither kernel."""
    causes = bottlenecks_of(parent.outcome.features)
    return Where(move.action, _params(move), not parent.proposal.candidate.actions, next(iter(causes), ""))


def _params(move: Move) -> Params:
    """Without names of the source: of a move within a move its action and parameters stay, its region goes."""
    found: list[tuple[str, int | str]] = []
    for key, value in move.params:
        inner = _INNER.fullmatch(str(value)) if key == "as" else None
        if inner is None:
            found.append((key, value))
            continue
        found.append((key, inner[1]))
        for pair in (inner[2] or "").split(","):
            name, _, text = pair.partition("=")
            if text:
                found.append((f"as {name}", int(text) if text.lstrip("-").isdigit() else text))
    return tuple(found)


def gained(trials: Iterable[Trial]) -> tuple[Gained, ...]:
    """What the last moves of deterministic candidates gained over what they were made on, where that was right."""
    told = list(trials)
    by_path = {t.proposal.candidate.actions: t for t in reversed(told)}
    found: dict[Where, list[tuple[float, float, bool]]] = {}
    for trial in told:
        path, move = trial.proposal.candidate.actions, made_by(trial.proposal.provenance)
        parent = by_path.get(path[:-1]) if path else None
        if trial.proposal.origin not in DETERMINISTIC or move is None or move.name != path[-1]:
            continue
        if parent is None or parent.time_ns is None:
            continue
        found.setdefault(where(move, parent), []).append(_told(trial, move, parent.time_ns))
    kept = sorted(found.items(), key=lambda item: -len(item[1]))[:MOST_MOVES]
    return tuple(
        Gained(at, _mean(g for g, _, _ in all_), _mean(x for _, x, _ in all_), len(all_), sum(f for _, _, f in all_))
        for at, all_ in kept
    )


def _told(trial: Trial, move: Move, parent_ns: float) -> tuple[float, float, bool]:
    gain = FAILURE
    if trial.time_ns is not None:
        gain = max(math.log(parent_ns / trial.time_ns), 2 * FAILURE)
    return math.log(max(move.gain, 1e-3)), gain, trial.outcome.status < Status.SLOW


def _mean(values: Iterable[float]) -> float:
    """Rounded, to be kept."""
    found = list(values)
    return round(sum(found) / len(found), 4)


def made_by(provenance: Mapping[str, Any]) -> Move | None:
    """The move that a deterministic proposal was made by; the inverse of ``to_json``. None where that does not say."""
    try:
        params = tuple((key, value) for key, value in provenance["params"])
        return Move(provenance["action"], provenance["region"], params, provenance["gain"])
    except (KeyError, TypeError, ValueError):
        return None
