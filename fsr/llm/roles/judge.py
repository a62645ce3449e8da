"""The Judge: evidence in, one bottleneck and one plan out; of a failing candidate, its one critical issue and the
smallest fix. The two small JSON objects are CudaForge's (arXiv 2511.01884)."""

from __future__ import annotations

from fsr.features.schema import BOTTLENECKS, Features
from fsr.llm.exchange import Field, Prompt
from fsr.llm.roles.directive import Directive, read_fields
from fsr.llm.scene import (
    Scene,
    Section,
    bottleneck_words,
    ceilings_words,
    composed,
    contract_words,
    failure_words,
    room,
    time_words,
    tried_words,
)

VERSION = 1
TOKENS = 300
PLAN = (Field("bottleneck", tuple(BOTTLENECKS)), Field("method", (), 200), Field("plan", (), 300))
FAILURE = (Field("critical_issue", (), 200), Field("why", (), 200), Field("minimal_fix", (), 300))
SYSTEM = (
    "You judge CUDA kernels by evidence. Name the one thing that costs most time and the one change that removes it. "
    "Do not write code. Answer with one JSON object."
)
FAILED = (
    "You find out why a CUDA kernel fails. Name the one issue that makes it fail and the smallest fix. Do not write "
    "code. Answer with one JSON object."
)
COUNTED = 12


def prompt(scene: Scene, sample: int = 0) -> Prompt:
    """Asks for one bottleneck and one plan."""
    user = composed(
        [
            Section(1, ceilings_words(scene.target)),
            Section(3, contract_words(scene.contract)),
            Section(0, f"```cuda\n{scene.file}```"),
            Section(0, time_words(scene)),
            Section(0, bottleneck_words(scene.trial.outcome.features, 4)),
            Section(2, counters_words(scene.trial.outcome.features)),
            Section(4, tried_words(scene.view)),
            Section(0, 'Answer {"bottleneck": one of ' + ", ".join(BOTTLENECKS) + ', "method": "...", "plan": "..."}.'),
        ],
        room(scene, TOKENS),
    )
    return Prompt("judge", "plan", VERSION, SYSTEM, user, PLAN, TOKENS, sample)


def failure_prompt(scene: Scene, sample: int = 0) -> Prompt:
    """Asks for the critical issue of a candidate that failed."""
    user = composed(
        [
            Section(1, contract_words(scene.contract)),
            Section(0, f"```cuda\n{scene.file}```"),
            Section(0, f"It failed: {failure_words(scene.trial.outcome)}"),
            Section(0, 'Answer {"critical_issue": "...", "why": "...", "minimal_fix": "..."}.'),
        ],
        room(scene, TOKENS),
    )
    return Prompt("judge", "failure", VERSION, FAILED, user, FAILURE, TOKENS, sample)


def read(text: str, asked: Prompt) -> Directive:
    """What an answer to either prompt says. Raises Unusable."""
    return Directive("judge", read_fields(text, asked.fields))


def counters_words(features: Features) -> str:
    """The hardware counters that were read, in a line each."""
    if features.counters is None:
        return ""
    read = {name: getattr(features.counters, name) for name in features.counters.__slots__}
    known = [f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in read.items() if value is not None]
    return "Hardware counters:\n" + "\n".join(known[:COUNTED])
