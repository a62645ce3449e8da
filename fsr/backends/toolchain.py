"""What every toolchain offers: candidate text to image, with no device needed and no process state."""

from __future__ import annotations

from typing import Protocol

from fsr.records import Candidate, CompileFailure, Image


class Toolchain(Protocol):
    """Turns candidates into images. Safe to call in several processes at once; never opens a device."""

    @property
    def name(self) -> str:
        """For example 'nvrtc'."""

    @property
    def version(self) -> str:
        """What a cache key needs to know, for example 'nvrtc 13.0'."""

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """Compile every entry of the candidate's plan. Compiler errors are a CompileFailure whose line counts in
        ``candidate.source``. Raises MissingToolError when the compiler is not installed."""
