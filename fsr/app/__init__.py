"""The composition root: it wires source, contract, search, evaluation, workers, cache and runs together."""

from __future__ import annotations

from fsr.app.checking import check, evaluate
from fsr.runs.options import RefineOptions
from fsr.runs.refining import refine

__all__ = ["RefineOptions", "check", "evaluate", "refine"]
