"""Macro thinking: an action type and a code region, which the Coder then carries out as exactly one step (the split is
QiMeng-Kernel's, arXiv 2511.20100). The model may name them, or the policy does."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.llm.exchange import Field, Prompt
from fsr.llm.roles.directive import Directive, read_fields
from fsr.llm.scene import Scene, Section, bottleneck_words, ceilings_words, composed, room, time_words, tried_words

VERSION = 1
TOKENS = 60
TYPES = {
    "tiling": "stage a tile in shared memory or registers and reuse it",
    "fusion": "merge loops or passes so that data is read once",
    "reordering": "change which thread does what, or the order of loops, so that accesses coalesce",
    "pipelining": "load what comes next while computing",
    "vectorization": "load and store 8 or 16 bytes a thread where the alignment is checked",
    "parallelization": "give a row or a sum to a warp or block, combining with shuffles",
    "cheaper arithmetic": "hoist, strength-reduce or replace by cheaper instructions of the same accuracy",
}
SYSTEM = "You plan how to make GPU kernels faster. Choose one kind of change and where to make it. Answer as JSON."


def prompt(scene: Scene, regions: Sequence[str], sample: int = 0) -> Prompt:
    """Asks for a type and one of the regions."""
    kinds = "\n".join(f"- {name}: {means}" for name, means in TYPES.items())
    user = composed(
        [
            Section(3, ceilings_words(scene.target)),
            Section(0, f"```cuda\n{scene.file}```"),
            Section(1, time_words(scene)),
            Section(0, bottleneck_words(scene.trial.outcome.features)),
            Section(2, tried_words(scene.view, 8)),
            Section(0, f"Kinds of change:\n{kinds}\nRegions: {', '.join(regions)}"),
            Section(0, 'Answer {"type": "...", "region": "..."}.'),
        ],
        room(scene, TOKENS),
    )
    fields = (Field("type", tuple(TYPES)), Field("region", tuple(regions)))
    return Prompt("macro", "type and region", VERSION, SYSTEM, user, fields, TOKENS, sample)


def read(text: str, asked: Prompt) -> Directive:
    """The step that an answer names. Raises Unusable."""
    return step(**read_fields(text, asked.fields))


def step(type: str, region: str) -> Directive:
    """A step of a type at a region, whoever chose it."""
    return Directive(
        "macro", {"type": type, "region": region, "meaning": TYPES[type], "limit": "exactly this one step"}
    )
