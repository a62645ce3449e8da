"""The Chooser: legal moves as a closed list, one of which the model names; deterministic code applies it.

A model that can do nothing else is asked in few words: on a CPU it reads some fifty tokens a second, and what it could
make of code and evidence is little. What stays the same stands first, where a model's memory of the last prompt serves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fsr.llm.exchange import Field, Prompt
from fsr.llm.scene import Scene, Section, bottleneck_words, ceilings_words, composed, room, time_words, tried_words
from fsr.llm.unusable import Unusable
from fsr.prediction.measured import judged
from fsr.transform.protocol import Action, Move

VERSION = 1
MOST_MOVES = 20
MOST_KINDS = 6  # in a brief prompt
TOKENS = 24
SYSTEM = "You make GPU kernels faster. Choose the one change that will gain most. Answer with its number as JSON."

BRIEF = 'Choose the best change of a GPU kernel. Answer as JSON: {"move": "1"}.'


def prompt(scene: Scene, moves: Sequence[tuple[Action, Move]], sample: int = 0) -> Prompt:
    """Asks for one of the moves (at most MOST_MOVES are offered; the most promising should come first)."""
    offered = moves[:MOST_MOVES]
    listed = "\n".join(f"{n}: {move.name} (relieves {_aims(action)})" for n, (action, move) in enumerate(offered, 1))
    user = composed(
        [
            Section(3, ceilings_words(scene.target)),
            Section(2, f"```cuda\n{scene.file}```"),
            Section(1, time_words(scene)),
            Section(1, bottleneck_words(scene.trial.outcome.features)),
            Section(4, tried_words(scene.view, 8)),
            Section(5, _elsewhere(scene)),
            Section(0, f"Changes that can be made:\n{listed}"),
            Section(0, 'Answer {"move": "NUMBER"}.'),
        ],
        room(scene, TOKENS),
    )
    return Prompt("chooser", "list", VERSION, SYSTEM, user, _numbered(offered), TOKENS, sample)


def kinds(moves: Sequence[tuple[Action, Move]]) -> list[tuple[Action, Move]]:
    """The most promising move of each action, at most MOST_KINDS: what a brief prompt offers."""
    first: dict[str, tuple[Action, Move]] = {}
    for action, move in moves:
        first.setdefault(action.name, (action, move))
    return list(first.values())[:MOST_KINDS]


def brief(scene: Scene, offered: Sequence[tuple[Action, Move]], sample: int = 0) -> Prompt:
    """Asks the same in under a hundred tokens. offered: what :func:`kinds` gives."""
    causes = ", ".join(cause.name for cause in judged(scene.trial.outcome.features)[:2])
    listed = [f"{n} {action.name}" for n, (action, _) in enumerate(offered, 1)]
    user = "\n".join([f"Slow by {causes or 'something unknown'}.", *listed])
    return Prompt("chooser", "brief", VERSION, BRIEF, user, _numbered(offered), TOKENS, sample)


def read(text: str, moves: Sequence[tuple[Action, Move]]) -> tuple[Action, Move]:
    """The move that an answer names, by number or by name. Raises Unusable."""
    offered = moves[:MOST_MOVES]
    said = _said(text)
    for action, move in offered:
        if said == move.name:
            return action, move
    number = re.fullmatch(r"\s*(\d{1,3})\b.*", said, re.DOTALL)
    if number is None:
        raise Unusable("unparsable", f"{said[:60]!r} names no change")
    if not 1 <= int(number[1]) <= len(offered):
        raise Unusable("illegal choice", f"{number[1]} of {len(offered)}")
    return offered[int(number[1]) - 1]


def _numbered(offered: Sequence[tuple[Action, Move]]) -> tuple[Field]:
    return (Field("move", tuple(str(n) for n in range(1, len(offered) + 1))),)


def _said(text: str) -> str:
    found = re.search(r"\{.*?\}", text, re.DOTALL)
    if found is None:
        return text.strip()
    try:
        told = json.loads(found[0])
    except ValueError:
        raise Unusable("unparsable", f"{text[:60]!r} is no JSON") from None
    move = told.get("move")
    if not isinstance(move, str | int):
        raise Unusable("unparsable", "no field 'move'")
    return str(move)


def _aims(action: Action) -> str:
    return ", ".join(sorted(action.aims_at)) or "nothing in particular"


def _elsewhere(scene: Scene) -> str:
    return "What won on kernels like this one:\n" + "\n".join(scene.won_elsewhere) if scene.won_elsewhere else ""
