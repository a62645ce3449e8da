"""Are two candidates one program? Their instructions for the host device, optimised, say so where they agree."""

from __future__ import annotations

from functools import lru_cache

from fsr.backends.select import recording_backend
from fsr.emulator.elf import code_of
from fsr.records import Candidate, Image


def same_code(one: Candidate, other: Candidate, target: str) -> bool:
    """Whether two candidates compile to the same instructions and constants and are launched alike. False where either
    does not compile."""
    if one.plan != other.plan:
        return False
    code = _code(one, target)
    return code is not None and code == _code(other, target)


@lru_cache(maxsize=8)
def _code(candidate: Candidate, target: str) -> bytes | None:
    image = recording_backend().toolchain(target).compile(candidate)
    return code_of(image.data) if isinstance(image, Image) else None
