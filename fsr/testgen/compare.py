"""The verdict on a candidate's outputs, element by element. No share of elements may differ.

An element is right when it lies within a bound of the truth (the precise answer where there is one, else the
original's): a few units in the last place of its scale, four times the original's own error, and the spread
that repeated runs of the original show. What exceeds that is held against how far rounding in the original's own types
may carry that very element (:attr:`Expected.noise`) before it is called wrong, so that the verdict depends neither on
the seed nor on how lucky the original's own rounding was. Nothing else is forgiven near zero: of an absolute bound
there is only the spacing of the type's denormal values, or what a candidate that openly flushes them takes.
NaN and infinities stand exactly where the original's do, but where samples of its own rounding have some and others
not. Integers, booleans and outputs declared exact are equal bit for bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fsr.contract.model import Contract
from fsr.expressions import evaluate
from fsr.hardware.dtypes import doubled, float_limits, is_float
from fsr.hardware.host_memory import host_memory_bytes
from fsr.records import Candidate, Case, Json, Role
from fsr.testgen.elementwise import agree, broadcast, distances, holds, same_wildness, told
from fsr.testgen.families import OVERFLOWING
from fsr.testgen.oracle import Expected
from fsr.testgen.structured import apart
from fsr.testgen.unfused import infinite_unfused
from fsr.testgen.values import Array, same_bits

TIMES_LESS_ACCURATE = 4.0
STEPS_SHARE = 1000  # of so many elements one may lie on the other side of a step
# Floors, in units of the output type's spacing. 32 in float32 is 4e-6: room for another order of summation and for
# fast-math intrinsics, far below a float16 or TF32 detour (5e-4).
FLOOR_ULPS = {2: 1.0, 4: 32.0, 8: 32.0}
ARRAY_ERROR_CAP = 16.0  # one freak element of the original must not widen the bound of all others
SURELY = 0.75  # see _surely_right
MEMORY_SHARE = 32  # of the host's memory, what bounds of one output may take to be kept
OVERFLOWED_NEAR = 2.0**-7  # how near to the truth, relatively, counts where the original has no number at all
NOTHING = 1e-40  # beneath which nobody tells a difference: the last bits of values that are denormal
LOST = 0.5  # how far from the truth, relatively, an answer is none
ORDERED = frozenset({"sorted", "reverse"})
ADDS = re.compile(r"\batomicAdd|\b(?:atom|red)\.(?:[\w:]+\.)*add\b")
CARRIED = 4.0  # what a mean that runs along ordered values carries, beside what a sum of them does
FREE_LENGTH = 8.0  # sums of up to 64 terms are covered by the floor itself; longer ones need more room


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The worst element of one output. ``kind``: 'unwritten', 'written' (the original leaves it alone),
    'non-finite', 'value' or 'shape'; ``count`` of ``total`` elements are wrong. ``error`` and ``bound`` are
    absolute; infinite when they make no sense."""

    argument: str
    kind: str
    index: tuple[int, ...]
    got: float
    expected: float
    error: float
    bound: float
    count: int
    total: int

    def evidence(self, case: Case) -> dict[str, Json]:
        """The mismatch and its case as the evidence of an outcome (JSON: no NaN, such values as text)."""
        return {
            "case": case.name,
            "sizes": case.size_map(),  # type: ignore[dict-item]
            "family": case.family,
            "seed": case.seed,
            "argument": self.argument,
            "kind": self.kind,
            "index": list(self.index),
            "got": _plain(self.got),
            "expected": _plain(self.expected),
            "worst_error": _plain(self.error),
            "bound": _plain(self.bound),
            "wrong": self.count,
            "of": self.total,
        }

    def __str__(self) -> str:
        place = ", ".join(map(str, self.index))
        return (
            f"{self.argument}[{place}] is {self.got:.9g}, expected {self.expected:.9g} ({self.kind}; error "
            f"{self.error:.3g}, bound {self.bound:.3g}; {self.count} of {self.total} elements wrong)"
        )


def compare(
    contract: Contract,
    case: Case,
    got: Mapping[str, Array],
    expected: Expected,
    initial: Mapping[str, Array] | None = None,
    *,
    flushes: bool = False,
) -> list[Mismatch]:
    """The worst mismatch of every output that has one; empty when all are right.

    ``initial``: the buffers as this run found them, so that elements left unwritten are told from wrong ones.
    ``flushes``: the candidate turns denormal values into zero, as its text and its compiler's flags say.
    """
    found, layouts = [], expected.layouts
    contract, got, initial = contract.apart(), apart(got, layouts), apart(initial or {}, layouts)
    for name, want in expected.arrays.items():
        one = _Output(contract, case, name, expected, flushes)
        mismatch = _compare_one(one, got[name], want, initial.get(name))
        if mismatch is not None:
            found.append(mismatch)
    return found


def compare_baseline(contract: Contract, case: Case, expected: Expected) -> list[Mismatch]:
    """Whether the original agrees with the contract's reference: a loose check (a hundred floors, and the growth of
    a plain sum) that finds a wrong kernel or a wrong reference, not rounding."""
    found = []
    for name, truth in (expected.precise or {}).items():
        got = expected.arrays[name]
        rel, absolute = tolerance(contract, case, got.dtype)
        bound = absolute + 100.0 * rel * broadcast(expected.scale[name], got) + 4.0 * expected.spread[name]
        mismatch = _worst(name, got, truth, bound, ~agree(got, truth, bound))
        if mismatch is not None:
            found.append(mismatch)
    return found


def flushes(*candidates: Candidate) -> bool:
    """Whether any of these kernels turns denormal float32 values into zero: by its compiler's flags, or by adding
    atomically, which in global memory never has any (PTX ISA, ``atom.add.f32``). A candidate may keep what the original
    loses: ask for both."""

    def flushed(one: Candidate) -> bool:
        by_flag = any(re.fullmatch(r"--?(use_fast_math|ftz=true)", flag) for flag in one.plan.flags)
        return by_flag or adds(one.source)

    return any(map(flushed, candidates))


@lru_cache(maxsize=64)
def adds(source: str) -> bool:
    """Whether a source adds atomically; asked for at every case."""
    return ADDS.search(source) is not None


def exactly_within(contract: Contract, dtype: np.dtype[Any]) -> float | None:
    """By how much a result may be off where nothing but equal bits is right otherwise: of whole numbers, and where the
    contract asks for it. None elsewhere."""
    return (contract.tolerance.atol or 0.0) if contract.tolerance.exact or not is_float(dtype) else None


def tolerance(
    contract: Contract, case: Case, dtype: np.dtype[Any], *, flushed: bool = False, unordered: bool = False
) -> tuple[float, float]:
    """(relative, absolute) floor of the bound: the contract's own where given, else from the type; the relative one
    grows with the square root of the length of the sum, as rounding does, and with the length where the values are in
    order. ``flushed``: float32 arithmetic has no denormal values. ``unordered``: the original adds in no order of its
    own, so that values in order may round one way all along in another order than they did there."""
    stated = contract.tolerance
    if not is_float(dtype):
        return 0.0, stated.atol or 0.0
    limits = float_limits(dtype)
    length = _length(contract, case)
    relative = stated.rtol
    if relative is None:
        ordered = case.family in ORDERED
        unstated = ordered and unordered and stated.sum_length is None
        growth = _growth(_longest(contract, case) if unstated else length)
        if ordered:  # what rounds one way all along does not average out
            growth *= growth * CARRIED
        relative = FLOOR_ULPS.get(dtype.itemsize, 1.0) * limits.eps * growth
    terms = length if stated.sum_length is not None or limits.smallest > NOTHING else max(_longest(contract, case), 1.0)
    absolute = (1.0 + math.sqrt(terms)) * limits.smallest  # terms may be scaled before they are summed
    if flushed and dtype.itemsize in (2, 4) and limits.largest > 1e38:  # float32, and bfloat16, computed as float32
        absolute = 4.0 * length * limits.tiny  # of every term
    return relative, stated.atol if stated.atol is not None else absolute


def _length(contract: Contract, case: Case) -> float:
    """Of how many terms the contract says that sums are; 1 where it says nothing."""
    stated = contract.tolerance.sum_length
    return 1.0 if stated is None else max(float(evaluate(stated, case.size_map())), 1.0)


def _growth(length: float) -> float:
    """How many times the rounding of a sum of so many terms is, at random, that of one that the floor covers."""
    return max(1.0, math.sqrt(length) / FREE_LENGTH)


def _longest(contract: Contract, case: Case) -> float:
    """The longest extent of what is read: of as many terms a sum may be whose length is not stated."""
    sizes = case.size_map()
    reads = (a for a in contract.buffers() if a.role is not Role.OUT)
    return max((float(extent) for a in reads for extent in contract.shape(a, sizes)), default=1.0)


# ---------------------------------------------------------------- one output


@dataclass(frozen=True, slots=True)
class _Output:
    """One output of one case: what its elements are judged by."""

    contract: Contract
    case: Case
    name: str
    expected: Expected
    flushed: bool


def _floor(one: _Output, dtype: np.dtype[Any]) -> tuple[float, float]:
    """See :func:`tolerance`."""
    return tolerance(one.contract, one.case, dtype, flushed=one.flushed, unordered=one.expected.unordered)


def _compare_one(one: _Output, got: Array, want: Array, initial: Array | None) -> Mismatch | None:
    name, contract, expected = one.name, one.contract, one.expected
    if got.shape != want.shape or got.dtype != want.dtype:
        return Mismatch(name, "shape", (), math.nan, math.nan, math.inf, 0.0, got.size, want.size)
    if same_bits(got, want).all():
        return None
    never = expected.unwritten[name]
    left = same_bits(got, initial) if initial is not None else np.zeros(got.shape, dtype=bool)
    if initial is not None and (never & ~left).any():
        return _worst(name, got, want, np.zeros(()), never & ~left, "written")
    truth, bound = want, np.zeros(())
    within = exactly_within(contract, got.dtype)
    if within is not None:
        bound = np.asarray(expected.spread[name]) + within
        wrong, kind = ~_exact(got, want, bound), "value"
    elif _surely_right(one, got, want, never):
        return None
    else:
        truth, bound = _bound(one)
        excused = _overflowed(one, got, want, truth, bound)
        lost = _lost(one, got, want, truth)
        lost |= infinite_unfused(expected, name, got, ~same_wildness(got, want) & ~excused & ~lost & ~never)
        wrong, kind = ~same_wildness(got, want) & ~excused & ~lost & ~never, "non-finite"
        wrong &= ~_undecided(one, got, wrong)
        if not wrong.any():
            wrong, kind = ~agree(got, truth, bound) & np.isfinite(doubled(want)) & ~lost & ~never, "value"
            if wrong.any():
                near = bound
                for bound in _wider(one, near):
                    wrong &= ~agree(got, truth, bound)
                    if not wrong.any():
                        break
                wrong &= ~_undecided(one, got, wrong)
                wrong &= ~_stepped(one, got, near, wrong)
    wrong &= ~never
    if (wrong & left).any():
        wrong, kind = wrong & left, "unwritten"
    return _worst(name, got, truth, bound, wrong, kind)


def _surely_right(one: _Output, got: Array, want: Array, ignored: Array) -> bool:
    """Whether every element lies so near to the original's that it is right whatever the truth is, as most are: then
    neither the truth nor all perturbed runs, which for a dear original take minutes, need be known.

    With B the floor of the bound at a scale that is at most the real one, e the original's own error and
    |got - want| <= 3/4 B, the error is at most 3/4 B + e: within B where e <= B / 4, else within 4 e, which is
    allowed."""
    relative, absolute = _floor(one, want.dtype)
    distance = distances(got, want)
    distance[ignored.reshape(-1)] = 0.0
    if not np.isfinite(distance).all():
        return False
    growing = one.expected.growing
    while True:
        scale = broadcast(growing.arrays[one.name], want).reshape(-1)
        if _near(distance, scale, relative, absolute):
            return True
        if not growing.grow():
            return False


def _near(distance: Array, scale: Array, relative: float, absolute: float) -> bool:
    return holds(distance.size, lambda part: distance[part] <= SURELY * (absolute + relative * scale[part]))


def _exact(got: Array, want: Array, slack: Array) -> Array:
    """Equality of bits; where the original itself varies or the contract allows an absolute error, that much."""
    same = same_bits(got, want)
    if is_float(got.dtype):
        same |= np.isnan(doubled(got)) & np.isnan(doubled(want))
    if not slack.any():
        return same
    with np.errstate(invalid="ignore"):
        return np.asarray(same | ((slack > 0) & (_apart(got, want) <= slack)))


def _apart(got: Array, want: Array) -> Array:
    """How far elements are apart; whole numbers to the last, where a double would not tell them apart."""
    if got.dtype.kind not in "iu":
        return np.asarray(np.abs(doubled(got) - doubled(want)))
    without_sign = np.dtype(f"u{got.dtype.itemsize}")
    high, low = (end(got, want).view(without_sign) for end in (np.maximum, np.minimum))
    return np.asarray(high - low, np.float64)


def _wider(one: _Output, bound: Array) -> Iterator[Array]:
    """The bound with a second opinion of it, wider each time: more perturbed runs, and the original's own rounding, of
    which a few samples mostly suffice."""
    _, wider = _bound_at(one, one.expected.wider_scale[one.name])
    yield (bound := np.maximum(bound, wider))
    for noise in (one.expected.few_noise, one.expected.noise):
        if noise is not None:
            yield np.maximum(bound, TIMES_LESS_ACCURATE * noise.error[one.name])


def _undecided(one: _Output, got: Array, wrong: Array) -> Array:
    """Where nothing but the original's own rounding decides whether there is an answer (see Noise), and this is none,
    or one that is about as large as rounding makes them. Such an element is a residue of terms that are alike, whose
    sum rounds one way all along, which errors at random do not show; it is undecided as there is none of its root.
    ``wrong``: where that is asked; nowhere takes no runs."""
    answer, found = doubled(got), np.zeros(got.shape, dtype=bool)
    room = TIMES_LESS_ACCURATE * math.sqrt(CARRIED * _growth(_length(one.contract, one.case)))
    for noise in one.expected.noises() if wrong.any() else ():
        alike = ~np.isfinite(answer) | (np.abs(answer) <= room * noise.most[one.name])
        found |= noise.undecided(one.name) & alike
        if not (wrong & ~found).any():
            break
    return found


def _stepped(one: _Output, got: Array, near: Array, wrong: Array) -> Array:
    """Where an element lies so near to a step (a threshold, a conversion, one turn more until a value escapes) that the
    original, rounding as badly as a candidate may, gives this very answer, up to what is allowed beside a step
    (``near``). Few elements of many do; that a few samples of the original's own rounding showed none of them says
    little."""
    found, count = np.zeros(got.shape, dtype=bool), int(wrong.sum())
    if not 0 < count <= got.size // STEPS_SHARE:
        return found
    at = np.flatnonzero(wrong)
    answer, room, alike = (
        doubled(got).reshape(-1)[at],
        broadcast(near, got).reshape(-1)[at],
        np.zeros(count, dtype=bool),
    )
    for sample in one.expected.loud():
        with np.errstate(invalid="ignore"):
            alike |= np.abs(doubled(sample[one.name]).reshape(-1)[at] - answer) <= room
        if alike.all():
            break
    found.reshape(-1)[at] = alike
    return found


def _bound(one: _Output) -> tuple[Array, Array]:
    """The truth (float64) and the largest absolute error allowed, per element; the same for all candidates of a case,
    and so found out once."""
    kept = one.expected.bounds
    key = (one.name, one.flushed)
    if key not in kept:
        found = _bound_at(one, one.expected.scale[one.name])
        if sum(a.nbytes for a in found) > host_memory_bytes() // MEMORY_SHARE:
            return found
        kept[key] = found
    return kept[key]


def _bound_at(one: _Output, known_scale: Array) -> tuple[Array, Array]:
    """As _bound, where terms are known to be that large."""
    name, expected = one.name, one.expected
    want = doubled(expected.arrays[name])
    relative, absolute = _floor(one, expected.arrays[name].dtype)
    scale = broadcast(known_scale, want)
    bound = absolute + relative * scale + TIMES_LESS_ACCURATE * np.asarray(expected.spread[name])
    if expected.precise is None:
        return want, 2.0 * bound  # two kernels err, the original and the candidate
    truth = doubled(expected.precise[name])
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(want - truth)
        error[~np.isfinite(error)] = 0.0
        broken = np.isfinite(want) & ~np.isfinite(truth)  # the precise answer is none here: trust the original
        truth = np.where(broken, want, truth)
        usual = _usual_relative_error(error, scale, absolute)
        bound = np.maximum(bound, TIMES_LESS_ACCURATE * np.maximum(error, usual * scale) + absolute)
    return truth, bound


def _usual_relative_error(error: Array, scale: Array, absolute: float) -> float:
    """The original's largest error relative to the scale, but at most 16 times its root mean square."""
    kept = scale > absolute
    if not kept.any():
        return 0.0
    ratio = error[kept] / scale[kept]
    return float(min(ratio.max(), ARRAY_ERROR_CAP * math.sqrt(float(np.mean(ratio * ratio)))))


def _overflowed(one: _Output, got: Array, want: Array, truth: Array, bound: Array) -> Array:
    """Where the original overflowed on its way, though the answer in float64 is finite. A
    candidate that is near that answer is nearer to the truth than the original. Whether an overflow leaves an infinity,
    its negative, or NaN depends on the order of the terms, which the contract's ``sum_length`` says may vary."""
    if one.expected.precise is None:
        return np.zeros(got.shape, dtype=bool)
    own, other, right = got.reshape(-1), want.reshape(-1), truth.reshape(-1)
    most, varies = broadcast(bound, got).reshape(-1), one.contract.tolerance.sum_length is not None

    def on_its_way(part: slice) -> Array:
        a, b, true = doubled(own[part]), doubled(other[part]), right[part]
        with np.errstate(over="ignore", invalid="ignore"):
            excused = np.abs(a - true) <= np.maximum(most[part], OVERFLOWED_NEAR * np.abs(true))
        return np.asarray(~np.isfinite(b) & np.isfinite(true) & (excused | (varies & ~np.isfinite(a))))

    return told(got, on_its_way)


def _lost(one: _Output, got: Array, want: Array, truth: Array) -> Array:
    """Where a candidate has no number in a case of values near overflow that left the original answers that are none:
    one of them is off by half of the truth and more, or no number. A softmax whose scores are all minus infinity, and
    which takes a sum of nought for one, says 0; another order of the same steps has infinity less infinity there. That
    an answer of the original is right may be chance in such a case."""
    if one.expected.precise is None or one.case.family not in OVERFLOWING:
        return np.zeros(got.shape, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(doubled(want) - truth) <= LOST * np.abs(truth)
    none = np.isfinite(truth) & ~near
    return np.asarray(~np.isfinite(doubled(got)) & none.any())


def _worst(name: str, got: Array, truth: Array, bound: Array, wrong: Array, kind: str = "value") -> Mismatch | None:
    """The wrong element farthest beyond its bound, or None when none is wrong."""
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return None
    places = np.flatnonzero(wrong)
    a, b = doubled(got).reshape(-1)[places], doubled(truth).reshape(-1)[places]
    limit = broadcast(bound, got).reshape(-1)[places]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.abs(a - b)
        excess = np.where(np.isfinite(error), error / np.maximum(limit, 1e-300), np.inf)
    at = int(np.argmax(excess))
    index = tuple(int(i) for i in np.unravel_index(int(places[at]), got.shape))
    known = math.isfinite(float(error[at]))
    return Mismatch(
        name, kind, index, float(a[at]), float(b[at]), float(error[at]) if known else math.inf,
        float(limit[at]), count, got.size,
    )  # fmt: skip


def _plain(value: float) -> Json:
    return value if math.isfinite(value) else str(value)
