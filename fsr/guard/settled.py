"""What is compiled of a candidate: its text after preprocessing, the same for the host device and for the GPU."""

from __future__ import annotations

from functools import lru_cache

from fsr.records import Candidate
from fsr.source.preprocess import CannotPreprocess, preprocessed


@lru_cache(maxsize=16)
def settled_pair(candidate: Candidate, baseline: Candidate, target: str) -> tuple[Candidate, Candidate]:
    """Candidate and original as they are compiled. Where the original cannot be preprocessed here (it is the user's,
    and its compiler may know better), both stay as they are. Raises CannotPreprocess for a candidate alone."""
    try:
        original = preprocessed(baseline, baseline, target)
    except CannotPreprocess:
        return candidate, baseline
    return (original if candidate == baseline else preprocessed(candidate, baseline, target)), original
