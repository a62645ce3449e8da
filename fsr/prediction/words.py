"""What holds a kernel back, in plain words and line by line: the text of ``fsr features KERNEL``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fsr.features.schema import BOTTLENECKS
from fsr.hardware.gpus import Target
from fsr.prediction.evidence import bottlenecks, duration, residence_words, site_words
from fsr.prediction.predict import LaunchPrediction, Prediction

_TELLING = 0.05  # lines that carry less of their launch's demand are left out


@dataclass(frozen=True, slots=True)
class LineRemark:
    """What one source line does to the memory system. ``line`` is 1-based in the candidate's source; ``weight`` its
    share of the launch's L1 and shared-memory passes."""

    line: int
    weight: float
    words: str


def explain(prediction: Prediction, target: Target, source: str, where: Callable[[int], str] = "line {}".format) -> str:
    """The whole report: predicted time, causes by share with what shows them, then for each launch its occupancy and
    telling lines.

    ``source`` is the candidate's text that the recording's lines count in; ``where`` names such a line to the user.
    """
    text = source.splitlines()
    parts = [f"predicted {duration(prediction.time_ns)} on {target.name}", "", "what the time goes to:"]
    for cause in bottlenecks(prediction, target):
        parts.append(f"  {cause.share:4.0%}  {cause.name}: {BOTTLENECKS[cause.name]}")
        parts.append(f"        {where(cause.line) + ': ' if cause.line else ''}{cause.evidence}")
    for launch in prediction.launches:
        parts += ["", *_launch_words(launch, target)]
        for remark in line_remarks(launch):
            code = text[remark.line - 1].strip() if 0 < remark.line <= len(text) else ""
            parts.append(f"  {where(remark.line)}: {remark.words}")
            if code:
                parts.append(f"      {code if len(code) <= 100 else code[:97] + '...'}")
    return "\n".join(parts)


def _launch_words(launch: LaunchPrediction, target: Target) -> Iterator[str]:
    times = launch.profile.times
    yield (
        f"{launch.entry}: {launch.profile.blocks} blocks of {launch.profile.threads_per_block} threads, "
        f"{duration(launch.time_ns)}{f', {times} times' if times > 1 else ''}"
    )  # fmt: skip
    yield from (f"  {words}" for words in residence_words(launch, target))
    if launch.occupancy.blocks:
        slowest = sorted(launch.limits.items(), key=lambda item: -item[1])[:3]
        yield "  limits, each alone: " + ", ".join(f"{_RESOURCE_WORDS[k]} {duration(v)}" for k, v in slowest)


_RESOURCE_WORDS = {
    "dram": "DRAM", "l2": "L2", "l1": "L1 and shared memory", "issue": "instruction issue", "atomics": "atomics",
    "tensor": "tensor cores", "units": "special functions and FP64", "latency": "waiting for data",
    "blocks": "starting blocks",
}  # fmt: skip


def line_remarks(launch: LaunchPrediction) -> list[LineRemark]:
    """The lines that ask most of the memory system, heaviest first."""
    passes = {id(t.site): t.passes for t in launch.traffic}
    sites = [s for s in launch.profile.sites if s.space in ("global", "shared", "local")]
    demand = [(passes.get(id(s), max(s.wavefronts, s.requests)) + s.serial, s) for s in sites]
    total = sum(weight for weight, _ in demand) or 1.0
    traffic = {id(t.site): t for t in launch.traffic}
    remarks = [
        LineRemark(site.line, weight / total, site_words(site, traffic.get(id(site))))
        for weight, site in demand
        if weight / total >= _TELLING and site.line > 0
    ]
    return sorted(remarks, key=lambda remark: (-remark.weight, remark.line))
