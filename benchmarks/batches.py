"""Toolchains that compile many candidates quickly, and what of a batch does not compile: see fsr.evaluation.batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.toolchain import Toolchain
from fsr.evaluation.batches import batches, together
from fsr.records import Candidate, CompileFailure, Image


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
