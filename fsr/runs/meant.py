"""An original whose author took the lanes of a warp to run in step, qualified as it was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from fsr.errors import BaselineError, UnorderedError
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import Kernel

_T = TypeVar("_T")


def as_it_stands_or_was_meant(
    kernel: Kernel, spec: SessionSpec, qualified: Callable[[Kernel, SessionSpec], _T]
) -> tuple[Kernel, SessionSpec, _T]:
    """What ``qualified`` says of an original, and the original that it says it of: the user's text, or, where that
    fails for want of an order and was written for lanes that run in step, the text with barriers of the warp. Raises
    what ``qualified`` raises of the user's text."""
    try:
        return kernel, spec, qualified(kernel, spec)
    except UnorderedError as error:
        meant = kernel.as_meant()
        if meant is None:
            raise
        spec = replace(spec, baseline=meant.baseline)
        try:
            return meant, spec, qualified(meant, spec)
        except BaselineError:
            raise error from None


def notes_on(kernel: Kernel) -> tuple[str, ...]:
    """What a user must know of an original that is not the text that stands in the file."""
    if not kernel.in_step:
        return ()
    places = ", ".join(f"{path}:{told}" for path, told in _ranges(kernel.in_step).items())
    return (
        "the kernel was written for lanes that run in step, which they need not since Volta, and fails its tests as it "
        f"stands: it is taken as it was meant, with __syncwarp() put in at {places}; that text is the original that is "
        "measured and compared here, and winners are made of it",
    )


def _ranges(places: Iterable[str]) -> dict[str, str]:
    """``file:line`` often as one text a file: ``7-12, 20``."""
    lines: dict[str, list[int]] = {}
    for path, _, line in (place.rpartition(":") for place in places):
        lines.setdefault(path, []).append(int(line))
    told = dict[str, str]()
    for path, found in lines.items():
        ordered = sorted(set(found))
        starts = [n for n in ordered if n - 1 not in ordered]
        ends = [n for n in ordered if n + 1 not in ordered]
        told[path] = ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in zip(starts, ends, strict=True))
    return told
