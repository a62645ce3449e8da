"""Inputs moved a little: by that an original tells how large the terms behind its answers are, and what its rounding
does to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fsr.contract.model import Contract
from fsr.hardware.dtypes import bits_of, doubled, float_limits, is_float, numpy_dtype
from fsr.records import Case, Role
from fsr.testgen.bounds import element_bounds
from fsr.testgen.chunks import in_chunks
from fsr.testgen.draws import mixed
from fsr.testgen.value_sets import is_set
from fsr.testgen.values import Array, CaseData

PERTURBED_RUNS = 3
ALONE_MOST = 4  # inputs shaken one at a time
DRIFTING_RUNS = 3  # of more than these
NOISY_STEP = 2.0**-40  # far below float's rounding, far above double's: another sample of the noise, the same problem
DENORMAL_STEPS = 8  # spacings of denormal doubles by which they are moved: ten ways, as amounts are halves at least
NOISY_DOUBLE_STEP = 2.0**-47  # where all is float64: some last bits, no more than shaken inputs leave room for anyway


def _movable(contract: Contract, case: Case, data: CaseData) -> list[str]:
    return [
        name
        for name, array in data.arrays.items()
        if is_float(array.dtype)
        and (contract.argument(name).role is not Role.OUT or name in case.aliased)
        and not is_set(contract.argument(name))  # what is compared with one of a list is that very number
    ]


def perturbed(contract: Contract, case: Case, data: CaseData, more: int = 0) -> Iterator[CaseData]:
    """All floating inputs shaken together, three times; then each alone. Together they may cancel (a result near zero
    whose terms move the same way), which would hide how large its terms are; alone they do not. ``more``: so many
    others, all together, the first few of them one way up to some place of each row and the other way behind it: what a
    running sum or mean carries along in ordered data errs like that, not at random."""
    contract, data = contract.apart(), data.apart()
    movable = _movable(contract, case, data)
    chosen = [movable] * (more or PERTURBED_RUNS)
    if len(movable) > 1 and not more:
        chosen += [[name] for name in movable[:ALONE_MOST]]
    for number, names in enumerate(chosen, start=100 if more else 0):
        rng = np.random.default_rng([case.seed % 2**32, 7 + number])
        drifts = bool(more) and number - 100 < DRIFTING_RUNS
        arrays = {
            name: _moved(_Moving(contract, case, data, perturbation(array.dtype)), name, rng, drifts=drifts)
            if name in names
            else array
            for name, array in data.arrays.items()
        }
        yield replace(data, arrays=arrays).together()


def moved_arrays(contract: Contract, case: Case, data: CaseData, number: int, step: float | None = None) -> CaseData:
    """The data with every floating input moved that is an array of its own, by a relative ``step`` at the most (None:
    the perturbation of its type): what a device that draws and moves the others by formulas cannot move."""
    contract, data = contract.apart(), data.apart()
    rng = np.random.default_rng([case.seed % 2**32, 211 + number])
    arrays = dict(data.arrays)
    for name in _movable(contract, case, data):
        if name not in data.draws:
            by = step or perturbation(data.arrays[name].dtype)
            arrays[name] = _moved(_Moving(contract, case, data, by), name, rng)
    return replace(data, arrays=arrays).together()


def noisy_step(contract: Contract) -> float:
    """The relative change of inputs from one noisy run to the next."""
    types = [numpy_dtype(a.dtype) for a in contract.apart().args]
    narrow = any(is_float(dtype) and dtype.itemsize < 8 for dtype in types)
    return NOISY_STEP if narrow else NOISY_DOUBLE_STEP


def nudged(contract: Contract, case: Case, data: CaseData, number: int) -> CaseData:
    """Float64 data with the last bits of every floating input changed: of scalars too, as there may be nothing else
    (a fractal, a field that is made of its points' places)."""
    contract, data = contract.apart(), data.apart()
    rng = np.random.default_rng([case.seed % 2**32, 101 + number])
    movable = _movable(contract, case, data) if number else []  # the first sample is of the very inputs
    step = noisy_step(contract)
    how = _Moving(contract, case, data, step)
    arrays = {n: _moved(how, n, rng) if n in movable else array.copy() for n, array in data.arrays.items()}
    if not number:
        return replace(data, arrays=arrays).together()
    scalars = {
        name: replace(s, value=float(_shaken(value := np.array([s.value], np.float64), step, _apart(value, rng))[0]))
        if s.dtype == "float64" and not is_set(contract.argument(name))
        else s
        for name, s in data.scalars.items()
    }
    return replace(data, arrays=arrays, scalars=scalars).together()


@dataclass(frozen=True, slots=True)
class _Moving:
    """Arrays of a case that are moved, by a relative ``step`` at the most."""

    contract: Contract
    case: Case
    data: CaseData
    step: float


def _moved(how: _Moving, name: str, rng: np.random.Generator, *, drifts: bool = False) -> Array:
    """An array moved, but the other way where that led out of the limits: an element that stays gives no sample, and
    where all are at an end, none would tell how large the terms are that cancel there. In arrays whose elements belong
    together equal ones stay equal, what ascends ascends, and none goes beyond the least and the largest: a symmetric
    matrix stays one, a place in its box."""
    array, argument, made = how.data.arrays[name], how.contract.argument(name), name in how.data.made
    amounts = _alike(array, rng) if made else _apart(array, rng, drifts=drifts)
    found = _shaken(array, how.step, amounts)
    low, high = element_bounds(argument, how.case.size_map())
    if made:
        least, most = _finite_ends(array)
        low, high = np.maximum(low, least), np.minimum(high, most)
    if np.any(np.isfinite(low) | np.isfinite(high)):
        found = _turned_back(array, found, low, high)
    if made:
        return _ascending_still(array, found)
    return np.sort(found, axis=-1) if argument.constraints.sorted and array.ndim else found


def _finite_ends(array: Array) -> tuple[float, float]:
    """The least and the largest finite number of an array; infinities where there is none."""
    flat, ends = array.reshape(-1), list[tuple[float, float]]()

    def look(part: slice) -> None:
        finite = flat[part][np.isfinite(flat[part])]
        if finite.size:
            ends.append((float(finite.min()), float(finite.max())))

    in_chunks(array.size, look)
    return min((e[0] for e in ends), default=-np.inf), max((e[1] for e in ends), default=np.inf)


def _apart(array: Array, rng: np.random.Generator, *, drifts: bool = False) -> Array:
    """By what share of a step each element is moved: at least half of it, either way. The amounts differ, so that two
    terms that cancel hardly ever move alike, which would leave no trace of how large they are. ``drifts``: one way up
    to some place of each row, the other way behind it."""
    amounts = _either_way(np.asarray(rng.random(array.shape, dtype=np.float32)))
    if drifts and array.ndim and array.shape[-1]:
        place = np.arange(array.shape[-1]) < rng.integers(array.shape[-1] // 4, array.shape[-1] // 4 * 3 + 1)
        return np.where(place, np.abs(amounts), -np.abs(amounts))
    return amounts


def _alike(array: Array, rng: np.random.Generator) -> Array:
    """The same, of which equal elements have the same."""
    found, key = np.empty(array.shape, np.float32), int(rng.integers(2**62))
    flat, amounts = np.ascontiguousarray(array).reshape(-1), found.reshape(-1)

    def mix(part: slice) -> None:
        words = mixed(key, bits_of(flat[part]).astype(np.uint64))
        amounts[part] = _either_way((words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24))

    in_chunks(array.size, mix)
    return found


def _either_way(shares: Array) -> Array:
    amounts = shares - np.float32(0.5)
    return np.asarray(amounts + np.copysign(np.float32(0.5), amounts))


def _ascending_still(array: Array, moved: Array) -> Array:
    """What was moved, where the array ascends, over all of it or in a line, never less than before."""
    if not array.ndim or not array.size:
        return moved
    lines, own = (a.reshape(-1, array.shape[-1]) for a in (array, moved))
    ascends = np.empty(len(lines), bool)

    def look(part: slice) -> None:
        ascends[part] = np.all(lines[part, 1:] >= lines[part, :-1], axis=-1)

    in_chunks(len(lines), look, lines.shape[-1])
    if ascends.all() and (lines[1:, 0] >= lines[:-1, -1]).all():
        return np.maximum.accumulate(moved.reshape(-1)).reshape(moved.shape)
    if not ascends.any():
        return moved
    return np.where(ascends[:, None], np.maximum.accumulate(own, axis=-1), own).reshape(moved.shape)


def _turned_back(array: Array, moved: Array, low: Array, high: Array) -> Array:
    """What was moved beyond limits moved the other way; ``low`` and ``high``: of each element, or of all of them."""
    found = np.empty(array.shape, array.dtype)
    limits = [np.broadcast_to(e, array.shape).reshape(-1) if np.ndim(e) else e for e in (low, high)]
    own, other, turned = (a.reshape(-1) for a in (array, moved, found))

    def turn(part: slice) -> None:
        before, behind = own[part], other[part]
        least, most = (e[part] if np.ndim(e) else e for e in limits)
        with np.errstate(invalid="ignore", over="ignore"):
            out = ((behind < least) | (behind > most)) & np.isfinite(before)
            turned[part] = np.where(out, before - (behind - before), behind)

    in_chunks(array.size, turn)
    return found


def perturbation(dtype: np.dtype[Any]) -> float:
    """The relative change that is far above the type's rounding and far below one."""
    return max(2.0**-12, 4.0 * float_limits(dtype).eps)


def _unstuck(array: Array, moved: Array, amounts: Array) -> Array:
    """Float64 elements that a share of themselves cannot move, being denormal, moved by some of the spacings there:
    runs of the same inputs round alike, which looks as if nothing did."""
    limits = float_limits(array.dtype)
    small = np.flatnonzero(np.abs(array) < limits.tiny)
    still = small[(moved[small] == array[small]) & (array[small] != 0.0)]
    most = np.minimum(np.abs(array[still]) / limits.smallest / 2, DENORMAL_STEPS)  # no sign changes
    moved[still] = array[still] + np.rint(amounts[still] * most) * limits.smallest
    return moved


def _shaken(array: Array, step: float, amounts: Array) -> Array:
    """Each element off by a relative ``step`` times its amount."""
    shaken, flat = np.empty_like(array, order="C"), np.ascontiguousarray(array).reshape(-1)
    result, by = shaken.reshape(-1), amounts.reshape(-1)

    def shake(part: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            # In float64 throughout: a step far below float32's own must not be lost.
            found = (doubled(flat[part]) * (1.0 + step * by[part].astype(np.float64))).astype(array.dtype)
            result[part] = found if array.dtype != np.float64 else _unstuck(flat[part], found, by[part])

    in_chunks(array.size, shake)
    return shaken
