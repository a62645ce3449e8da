"""What tests of lifting share: a kernel's text, lifted."""

from __future__ import annotations

from pathlib import Path

from fsr.computation.printing import lines
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel


def lifted(folder: Path, text: str, limit_s: float = 60) -> Lifting:
    """What is found of a text with a contract block, which is written to a folder."""
    (folder / "k.cu").write_text(text)
    kernel = load_kernel(folder / "k.cu")
    return lift(kernel.contract, kernel.baseline, limit_s=limit_s)


def computed(folder: Path, text: str) -> list[str]:
    """What it computes, line by line; the test fails with the reason where that is not known."""
    found = lifted(folder, text)
    assert found.computation is not None, found.why
    return lines(found.computation)
