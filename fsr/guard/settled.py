"""What is compiled of a candidate: its text after preprocessing, the same for the host device and for the GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from fsr.records import Candidate
from fsr.source.preprocess import CannotPreprocess, preprocessed

_LAMBDA = re.compile(r"(\]\s*)((?:__host__\s+)?__device__(?:\s+__host__)?)(?=\s*[({])")


@lru_cache(maxsize=16)
def settled_pair(candidate: Candidate, baseline: Candidate, target: str) -> tuple[Candidate, Candidate]:
    """Candidate and original as they are compiled. Where the original cannot be preprocessed here (it is the user's,
    and its compiler may know better), both stay as they are. Raises CannotPreprocess for a candidate alone."""
    try:
        original = _settled(baseline, baseline, target)
    except CannotPreprocess:
        return candidate, baseline
    return (original if candidate == baseline else _settled(candidate, baseline, target)), original


def _settled(candidate: Candidate, baseline: Candidate, target: str) -> Candidate:
    """A lambda loses its ``__device__``: nvcc takes it under a flag, NVRTC under none, and in device code it says
    nothing."""
    found = preprocessed(candidate, baseline, target)
    plain = _LAMBDA.sub(lambda match: match[1] + " " * len(match[2]), found.source)
    return found if plain == found.source else replace(found, source=plain)
