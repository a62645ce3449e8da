"""The evidence for one prompt, and its words: what a good GPU programmer would want to see before changing a kernel.

Sections have a rank; where they do not all fit the model's context, those of the lowest rank are left out, the longest
are cut. Kernel text is data: it stands fenced, and nothing that an answer says is ever carried out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fsr.contract.model import Contract
from fsr.features.schema import BOTTLENECKS, Features
from fsr.hardware.gpus import Target, closest_target
from fsr.llm.code import file_of
from fsr.llm.headroom import bound_ns
from fsr.prediction.measured import judged
from fsr.records import Basis, Outcome, Role, Status
from fsr.report.words import time_text
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import View

CHARACTERS_A_TOKEN = 3.0
TRIED, RELATIVES = 14, 2


@dataclass(frozen=True, slots=True)
class Scene:
    """What a prompt is written from. trial: the candidate to be changed. tokens: for prompt and answer together.
    won_elsewhere: lines on kernels with similar features. view: the search as it stood. moves: what is made on an
    answer again, and was on the file when it was timed."""

    trial: Trial
    view: View
    tokens: int
    won_elsewhere: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()

    @property
    def contract(self) -> Contract:
        """What the kernel promises."""
        return self.view.space.rules.contract

    @property
    def target(self) -> Target:
        """The GPU."""
        return closest_target(self.view.space.rules.target)

    @property
    def file(self) -> str:
        """The candidate as a file with launch lines."""
        return file_of(self.trial.proposal.candidate)


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a prompt. rank: 0 stays whatever happens."""

    rank: int
    text: str


def composed(sections: Iterable[Section], characters: int) -> str:
    """The sections in their order, without those of the highest ranks where they do not fit."""
    kept = [s for s in sections if s.text.strip()]
    while sum(len(s.text) + 2 for s in kept) > characters and any(s.rank for s in kept):
        worst = max(kept, key=lambda s: (s.rank, len(s.text)))
        kept.remove(worst)
    return "\n\n".join(s.text.strip("\n") for s in kept)


def room(scene: Scene, answer_tokens: int) -> int:
    """Characters that a prompt may have beside an answer of so many tokens."""
    return room_in(scene.tokens, answer_tokens)


def room_in(context: int, answer_tokens: int) -> int:
    """The same of a context of so many tokens."""
    return max(600, int((context - answer_tokens - 64) * CHARACTERS_A_TOKEN))


def contract_words(contract: Contract) -> str:
    """What the kernel must do, in words."""
    lines = [f"The kernel {contract.entry} and its arguments, in the kernel's order:"]
    for a in contract.args:
        if a.role is Role.SCALAR:
            lines.append(f"- {a.name}: {a.dtype} scalar" + (f" = {a.value}" if a.value else ""))
            continue
        if a.role is Role.NULL:
            lines.append(f"- {a.name}: a pointer that is always null")
            continue
        shape = " x ".join(a.shape if a.layout is None else a.shape[:-1]) or "1"
        if a.symbol:
            lines.append(
                f"- not an argument: the __constant__ variable {a.symbol}, {a.dtype} x {shape}, which callers fill"
            )
            continue
        says = {Role.IN: "only read", Role.OUT: "written, undefined before", Role.INOUT: "read and written"}[a.role]
        aligned = f", aligned to {a.alignment} bytes" if a.alignment else ", aligned to its elements only"
        of = a.dtype if a.layout is None else a.layout.type
        lines.append(f"- {a.name}: {of} buffer of {shape}, row-major, {says}{aligned}")
    for s in contract.sizes:
        timed = " and ".join(map(str, s.timed))
        lines.append(f"- size {s.name}: from {s.minimum} to {s.maximum}, timed at {timed}")
    if contract.aliasing:
        lines.append("- may share memory: " + "; ".join(", ".join(g) for g in contract.aliasing))
    return "\n".join(lines)


def ceilings_words(target: Target) -> str:
    """What this GPU can do at most."""
    fp32 = 2.0 * target.fp32_per_clock * target.sm_count * target.clock_ghz / 1e3
    return (
        f"GPU: {target.name} ({target.arch}): {target.sm_count} SMs, DRAM {target.memory_bytes_per_s / 1e12:.2g} TB/s, "
        f"L2 {target.l2_bytes >> 20} MiB, {fp32:.0f} TFLOP/s FP32, {target.max_shared_bytes >> 10} KiB shared memory a "
        f"block, {target.registers_per_sm} registers and {target.max_threads_per_sm} threads an SM, warps of "
        f"{target.warp_size}."
    )


def time_words(scene: Scene) -> str:
    """Where the candidate stands against the original and against the least that moving its bytes takes."""
    trial, baseline = scene.trial, next((t for t in scene.view.trials if t.proposal.id == 0), None)
    if trial.time_ns is None:
        return ""
    predicted = trial.outcome.timing is not None and trial.outcome.timing.basis is Basis.PREDICTED
    words = f"It takes {time_text(trial.time_ns)}{' (predicted)' if predicted else ''}"
    if baseline is not None and baseline.time_ns and trial.proposal.id:
        words += f", {baseline.time_ns / trial.time_ns:.2f} times as fast as the original"
    bound = bound_ns(scene.contract, scene.target)
    if bound:
        words += f". Moving every input and output through DRAM once takes {time_text(bound)}: "
        words += f"{trial.time_ns / bound:.1f} times less than now" if trial.time_ns > 1.05 * bound else "it is there"
    return words + "."


def moves_words(scene: Scene) -> str:
    """What is made on the file afterwards, without the model."""
    if not scene.moves:
        return ""
    made = "\n".join(f"- {move}" for move in scene.moves)
    return f"The time and what follows are with these rewrites, which are made on your version again:\n{made}"


def bottleneck_words(features: Features, most: int = 3) -> str:
    """What holds it back, with evidence line by line."""
    lines = []
    for cause in judged(features)[:most]:
        lines.append(f"- {cause.share:.0%} {cause.name}: {BOTTLENECKS[cause.name]}. {cause.evidence}".rstrip())
        if cause.code:
            lines.append(f"    line {cause.line}: {cause.code}")
    binary = features.binary
    if binary is not None and binary.registers is not None:
        lines.append(f"- {binary.registers} registers a thread" + _occupancy(features))
    return "What holds it back:\n" + "\n".join(lines) if lines else ""


def _occupancy(features: Features) -> str:
    binary = features.binary
    return f", occupancy {binary.occupancy:.0%}" if binary is not None and binary.occupancy is not None else ""


def tried_words(view: View, most: int = TRIED) -> str:
    """What was tried, newest last, each with its result."""
    baseline = next((t.time_ns for t in view.trials if t.proposal.id == 0), None)
    lines = [f"- {t.proposal.move[:90]}: {result_words(t.outcome, baseline)}" for t in view.trials if t.proposal.id]
    return "Tried so far:\n" + "\n".join(lines[-most:]) if lines else ""


def result_words(outcome: Outcome, baseline_ns: float | None) -> str:
    """An outcome in a few words."""
    if outcome.timing is not None and baseline_ns and outcome.status >= Status.SLOW:
        return f"right, {baseline_ns / outcome.timing.median_ns:.2f}x the original's speed"
    return f"{outcome.status.name.lower().replace('_', ' ')}: {failure_words(outcome, 120)}"


def failure_words(outcome: Outcome, most: int = 1500) -> str:
    """Why a candidate failed: the compiler's words, the shrunk case, what a sanitizer saw."""
    evidence, parts = outcome.evidence, []
    log = evidence.get("log")
    if isinstance(log, str):
        errors = [line for line in log.splitlines() if "error" in line.lower()] or log.splitlines()
        parts.append("\n".join(errors)[: most - 20])
    for key, value in evidence.items():
        if key != "log" and value is not None:
            parts.append(f"{key}: {value}")
    return ("; ".join(parts) or outcome.stage)[:most]


def relatives_words(scene: Scene, most: int = RELATIVES) -> Iterator[Section]:
    """The fastest other designs, with their times."""
    others = [t for t in scene.view.elites if t.proposal.id not in (scene.trial.proposal.id, 0)][:most]
    for number, t in enumerate(others):
        words = f"Another design, {time_text(t.time_ns or math.nan)}:\n```cuda\n{file_of(t.proposal.candidate)}```"
        yield Section(6 + number, words)


TESTS = (
    "It is tested at sizes 0, 1, primes, tile sizes plus and minus one and others that divide nothing, on denormal, "
    "huge, cancelling, constant and special values, against the original and a float64 reference, with guard zones "
    "around every buffer and outputs poisoned, twice, under a race detector; sizes that you do not see decide. Reading "
    "or writing outside a buffer, a missing tail, lower precision or state kept between launches fails."
)
LAUNCH_LINES = (
    "The file begins with comment lines that say how it is launched; change them when the launch changes:\n"
    "// launch: KERNEL | grid x y z | block x y z | dynamic shared bytes | arguments in the kernel's order\n"
    "// scratch: NAME DTYPE COUNT [zeroed]     (a device buffer of your own, by name among the arguments)\n"
    "Each is an expression over the sizes: + - * // %, ceil_div(a, b), min, max, next_pow2; several launch lines run "
    "one after the other; one that ends in | COUNT runs so many times in a row, and int32=step passes the number "
    "of the repetition. Arguments are contract arguments, scratch buffers, or int32=EXPRESSION."
)
