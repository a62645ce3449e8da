"""Many candidates in one compilation: each in a namespace of its own, so that thousands compile in minutes.

What compiles together compiles alone; where a batch fails, its members are compiled one by one, as the search does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.flags import split_defines
from fsr.backends.toolchain import Toolchain
from fsr.records import Candidate, CompileFailure, Image, Plan

BATCH = 32
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


class SyntaxToolchain(NvrtcToolchain):
    """NVRTC's front end alone, templates instantiated: 3 ms a candidate in a batch. What it takes can still fail
    later, with too much shared memory say."""

    def _options(self, candidate: Candidate, instrumented: bool) -> list[str]:
        return [*super()._options(candidate, instrumented), "--fdevice-syntax-only"]

    def _image(self, candidate: Candidate, answer: Any, instrumented: bool, seconds: float) -> Image | CompileFailure:
        if answer.get("status", 1):
            return super()._image(candidate, answer, instrumented, seconds)
        return Image("syntax", self.arch, b"", {}, {}, answer["log"][:200], seconds)


class QuickToolchain(NvrtcToolchain):
    """NVRTC with the least optimisation, down to the binary: 40 ms a candidate in a batch."""

    def _options(self, candidate: Candidate, instrumented: bool) -> list[str]:
        return [*super()._options(candidate, instrumented), "--Ofast-compile=max"]


def together(candidates: Sequence[Candidate]) -> tuple[Candidate, list[Plan]]:
    """One source for all, and the plan of each in it. They must carry the same flags."""
    includes: dict[str, None] = {}
    parts, plans = [], []
    for number, candidate in enumerate(candidates):
        includes |= dict.fromkeys(_INCLUDE.findall(candidate.source))
        body = _INCLUDE.sub("", candidate.source)
        undone = "".join(f"#undef {name}\n" for name in dict.fromkeys(_DEFINE.findall(body)))
        parts.append(f"namespace c{number} {{\n{body}\n}}\n{undone}")
        launches = tuple(replace(x, entry=f"c{number}::{x.entry}") for x in candidate.plan.launches)
        plans.append(replace(candidate.plan, launches=launches))
    everything = Plan(tuple(x for plan in plans for x in plan.launches), (), candidates[0].plan.flags)
    return Candidate("\n".join([*includes, *parts]), everything), plans


def batches(candidates: Sequence[Candidate], size: int = BATCH) -> Iterator[list[int]]:
    """Indices of candidates that can be compiled together: the same flags, at most ``size``."""
    alike = defaultdict(list)
    for index, candidate in enumerate(candidates):
        alike[candidate.plan.flags].append(index)
    for flags, indices in alike.items():
        step = 1 if split_defines(flags)[1] else size
        yield from (indices[at : at + step] for at in range(0, len(indices), step))


def failures(toolchain: Toolchain, candidates: Sequence[Candidate]) -> Mapping[int, CompileFailure]:
    """What does not compile, by index."""
    failed = {}
    for indices in batches(candidates):
        if isinstance(toolchain.compile(together([candidates[i] for i in indices])[0]), Image):
            continue
        for index in indices:
            result = toolchain.compile(candidates[index])
            if isinstance(result, CompileFailure):
                failed[index] = result
    return failed


def images(toolchain: Toolchain, candidates: Sequence[Candidate]) -> Mapping[int, tuple[Image, Plan] | CompileFailure]:
    """An image to run each from, with the plan that launches it there."""
    built: dict[int, tuple[Image, Plan] | CompileFailure] = {}
    for indices in batches(candidates):
        whole, plans = together([candidates[i] for i in indices])
        image = toolchain.compile(whole)
        if isinstance(image, Image):
            built |= {index: (image, plan) for index, plan in zip(indices, plans, strict=True)}
            continue
        for index in indices:
            alone = toolchain.compile(candidates[index])
            built[index] = (alone, candidates[index].plan) if isinstance(alone, Image) else alone
    return built
