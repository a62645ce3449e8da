"""Integer arrays that repeat one another, nearly: what is found again, matched, merged or told equal.

Arrays drawn apart hardly ever hold the same stretch, so that what compares them says "different" at once, and whatever
comes later, a letter's case, the seventeenth byte, the order of equal keys, is never asked for. In a case of echoes the
smallest integer input is drawn as usual, and each other one of its type repeats its lines over and over, turned by some
places, with a bit flipped here and there; one that is shorter than a line is its beginning. In half of them the
smallest ends in a whole number that the kernel is called with (a wildcard, a padding index), and has it elsewhere too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Contract
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Role

Array = np.ndarray[Any, Any]

ECHO, KNOWN = FAMILIES = ("echoes", "echoes of known numbers")
MOST_LINES = 1 << 12  # that are made one by one


def sources(contract: Contract) -> dict[str, Argument]:
    """By the name of each integer input that echoes another: that other one, of its type that whose most elements are
    fewest. What is one of a list echoes the same list alone."""
    sizes = {size.name: size.maximum for size in contract.sizes}
    inputs = [a for a in contract.buffers() if a.role is Role.IN and a.value is None and a.shape]
    whole = [a for a in inputs if numpy_dtype(a.dtype).kind in "iu" and not _apart(a)]
    found: dict[str, Argument] = {}
    for argument in whole:
        own = argument.constraints.values
        alike = [a for a in whole if a.dtype == argument.dtype and (not own or a.constraints.values == own)]
        first = min(alike, key=lambda a: math.prod(contract.shape(a, sizes)))
        if first is not argument:
            found[argument.name] = first
    return found


def _apart(argument: Argument) -> bool:
    """Whether its values follow rules that those of another do not."""
    rules = argument.constraints
    return rules.unique or rules.by_element or rules.offsets is not None


def planted(source: Array, known: Sequence[int], rng: np.random.Generator) -> Array:
    """The source, each line of which ends in one of these numbers, in turns, and has it in another place."""
    made = source.copy()
    if known and made.size:
        lines = made.reshape(-1, made.shape[-1])
        for line, value in zip(lines, itertools.cycle(known), strict=False):
            line[int(rng.integers(len(line)))] = line[-1] = value
    return made


def echoed(source: Array, shape: tuple[int, ...], limits: tuple[int, int], rng: np.random.Generator) -> Array | None:
    """An array of that shape and the source's type that repeats the source's lines (along its last axis), every fourth
    one turned by a random number of places, every eighth backwards. In about half of the repetitions one bit is
    flipped, in every third of these the last element's, each bit of the type in its turn, where that stays within the
    limits. None where there is nothing to repeat, or too many lines."""
    count, width = math.prod(shape), shape[-1]
    if not source.size or not count or count // width > MOST_LINES:
        return None
    lines = source.reshape(-1, source.shape[-1])
    if count < lines.shape[1]:
        return np.resize(lines[0], shape)
    values = np.stack([np.resize(lines[row % len(lines)], width) for row in range(count // width)])
    flat: Array = values.reshape(-1)
    places = rng.integers(0, count, max(count // (2 * lines.shape[1]), 1))
    ends = places[::3] % width
    places[::3] += np.minimum(ends // lines.shape[1] * lines.shape[1] + lines.shape[1], width) - 1 - ends
    bits = np.arange(len(places), dtype=np.uint64) % np.uint64(8 * source.dtype.itemsize)
    unsigned = np.dtype(f"u{source.dtype.itemsize}")
    flipped = (flat[places].view(unsigned) ^ (np.uint64(1) << bits).astype(unsigned)).view(source.dtype)
    within = (flipped >= limits[0]) & (flipped <= limits[1])
    flat[places[within]] = flipped[within]
    for row in range(min(3, len(values) - 1), len(values), 4):
        values[row] = np.roll(values[row], int(rng.integers(width)))
    values[1::8] = values[1::8, ::-1].copy()
    return values.reshape(shape)
