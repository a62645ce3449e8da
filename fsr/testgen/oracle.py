"""What a right kernel answers: the original's outputs, how sure they are, and a more precise answer.

The scale of an error is taken from the original itself: it runs again on inputs that are perturbed by a small
relative amount, and the change of every output element, divided by that amount, says how large the terms behind
it are (for a sum, the root of the summed squares; for exp(x), x·exp(x)). An error is judged against that, so
that cancellation is forgiven where every correct kernel suffers from it, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from fsr.contract.model import Contract, Layout
from fsr.hardware.dtypes import doubled, is_float
from fsr.records import Case, Role
from fsr.testgen.chunks import in_chunks
from fsr.testgen.noise import Noise
from fsr.testgen.parts import Part
from fsr.testgen.reference import reference_outputs, widened_data
from fsr.testgen.shaking import nudged, perturbation, perturbed
from fsr.testgen.structured import apart, layouts_of
from fsr.testgen.values import Array, CaseData, build, outputs, same_bits

Run = Callable[[Case, CaseData], Mapping[str, Array]]
"""Runs a kernel once from that data; returns its output buffers (at least), as new arrays."""


@dataclass(frozen=True, slots=True)
class Once:
    """A Run of an original that is known to repeat itself: it need not be asked twice."""

    run: Run

    def __call__(self, case: Case, data: CaseData) -> Mapping[str, Array]:
        """See Run."""
        return self.run(case, data)


WideRun = Callable[[Case, CaseData], Mapping[str, Array] | None]
"""As Run, of a widened form; None where there is none, or it does not run."""

MORE_RUNS = 8  # of a perturbation that all cancel to a tenth of what is usual: 0.08^8, about 2e-9 an element
NOISY_RUNS = 6
FEW_NOISY = 2  # of these, that tell of most elements that they are right
MORE_NOISY = 24  # where samples tell of any element that rounding decides if there is an answer: 2^-30 are missed
NOISY_DOUBLES = 24  # where all is float64: a residue there is a few last bits or none, by chance of each run
LOUD_RUNS = 24  # where a few elements are on the other side of a step


class Scale:
    """How large the terms behind each element of the outputs are (float64, absolute; 0 where an answer is no number),
    as far as perturbed runs have shown. Each run can only add: ``arrays`` is never more than what all of them tell.

    first: the original's answer. data: what it is to be perturbed to, a set a run."""

    def __init__(self, first: Mapping[str, Array], run: Callable[[CaseData], Mapping[str, Array]],
                 data: Iterator[CaseData]) -> None:  # fmt: skip
        self.arrays = {name: _magnitude(array) for name, array in first.items()}
        self._first, self._run, self._data = first, run, data if any(map(_floats, first.values())) else iter(())

    def grow(self) -> bool:
        """One perturbed run more; False where all were made."""
        data = next(self._data, None)
        if data is None:
            return False
        moved = self._run(data)
        for name, scale in self.arrays.items():
            if _floats(self._first[name]):
                np.maximum(scale, _change(self._first[name], moved[name]), out=scale)
        return True

    def whole(self) -> Mapping[str, Array]:
        """What all runs tell."""
        while self.grow():
            pass
        return self.arrays


Samples = Callable[[int], Iterable[int]]
"""Which samples of an original's rounding are drawn, by their numbers, of as many as are usual."""


def _one_more(number: int, count: int) -> Iterable[int]:
    """The sample that comes so many behind the usual ones."""
    return [count + number - 1]


class Expected:
    """What is known of one case. Per output name: ``arrays`` the original's answer (first run, poison seed 0);
    ``spread`` by how much repeated runs of the original differ (0 where they agree bit for bit); ``unwritten``
    elements that the original leaves alone. The rest is found out when a candidate's bits differ from the original's,
    which they mostly do not: ``precise`` a float64 answer or None, ``scale`` the magnitude an error is judged against,
    ``wider_scale`` the same from more runs, and ``noise`` how far rounding in the original's own types may carry an
    element (None: no such run; ``few_noise``: as the first samples tell): what is asked before an element is called
    wrong. ``part``: what all of these are of,
    where not of whole outputs. ``unordered``: see :class:`Asking`. ``instrumented``: of which build the answer is."""

    def __init__(
        self,
        arrays: Mapping[str, Array],
        spread: Mapping[str, Array],
        unwritten: Mapping[str, Array],
        precise: Callable[[], Mapping[str, Array] | None] = lambda: None,
        scale: Callable[[int], Scale] | None = None,
        noise: Callable[[Mapping[str, Array], Samples], Noise | None] = lambda truth, which: None,
    ) -> None:
        self.part: Part | None = None
        self.layouts: Mapping[str, Layout] = {}  # of outputs that are structures, whose members are known apart
        self.unordered = self.instrumented = False
        self.arrays, self.spread, self.unwritten = arrays, spread, unwritten
        self._precise, self._scale, self._noise = precise, scale, noise
        self.louder: Callable[[int], Mapping[str, Array] | None] = lambda number: None
        self.unfusing: Callable[[], Mapping[str, Array] | None] = lambda: None
        self._loud: list[Mapping[str, Array]] = []
        self._noisier: list[Noise] = []
        self.bounds: dict[object, tuple[Array, Array]] = {}  # what comparing finds out of it once: truth and bound

    @property
    def steady(self) -> bool:
        """Whether repeated runs gave the same bits, in every element."""
        return not any(np.any(s) for s in self.spread.values()) and not any(u.any() for u in self.unwritten.values())

    def answered(self, arrays: Mapping[str, Array]) -> Expected:
        """The same with other answers of the original: those of another device."""
        kept = {name: array for name, array in apart(arrays, self.layouts).items() if name in self.arrays}
        found = Expected(kept, self.spread, self.unwritten, self._precise, self._scale, self._noise)
        found.unordered, found.louder, found.layouts = self.unordered, self.louder, self.layouts
        found.unfusing = self.unfusing
        return found

    @cached_property
    def precise(self) -> Mapping[str, Array] | None:
        """See the class."""
        return self._precise()

    @cached_property
    def unfused(self) -> Mapping[str, Array] | None:
        """Its answer where each product is rounded before it is added; None where there is no such build."""
        return self.unfusing()

    @cached_property
    def growing(self) -> Scale:
        """See the class."""
        return self._scale(0) if self._scale is not None else Scale(self.arrays, lambda _: {}, iter(()))

    @property
    def scale(self) -> Mapping[str, Array]:
        """See the class."""
        return self.growing.whole()

    @cached_property
    def wider_scale(self) -> Mapping[str, Array]:
        """See the class."""
        more = self._scale(MORE_RUNS).whole() if self._scale is not None else self.scale
        return {name: np.maximum(scale, more[name]) for name, scale in self.scale.items()}

    @cached_property
    def few_noise(self) -> Noise | None:
        """See the class."""
        return self._noise(self._truth, lambda count: range(min(FEW_NOISY, count)))

    @cached_property
    def noise(self) -> Noise | None:
        """See the class."""
        few = self.few_noise
        rest = None if few is None else self._noise(self._truth, lambda count: range(FEW_NOISY, count))
        return few if few is None or rest is None else few.with_more(rest)

    def noises(self) -> Iterator[Noise]:
        """What samples tell, one more each time where they tell of any element that rounding decides if there is an
        answer; no more are drawn than are asked for."""
        if self.noise is None:
            return
        yield self.noise
        for number in range(1, MORE_NOISY + 1 if self.noise.decides else 0):
            if number > len(self._noisier):
                one = self._noise(self._truth, partial(_one_more, number))
                if one is None:
                    return
                self._noisier.append(one.with_more((self.noise, *self._noisier)[-1]))
            yield self._noisier[number - 1]

    def loud(self) -> Iterator[Mapping[str, Array]]:
        """Answers of the original rounding some times as badly as it does; no more are drawn than are asked for."""
        for number in range(LOUD_RUNS):
            if number >= len(self._loud):
                one = self.louder(number)
                if one is None:
                    return
                self._loud.append(one)
            yield self._loud[number]

    @property
    def _truth(self) -> Mapping[str, Array]:
        return self.precise if self.precise is not None else self.arrays


@dataclass(frozen=True, slots=True)
class Asking:
    """How a case is put to the original. ``folder``: where a reference function is imported from. ``part``: what the
    answer consists of, where not of all outputs. ``data_of``: as :func:`fsr.testgen.values.build`, or what keeps the
    data. ``unordered``: whether the original adds atomically, in no order of its own. ``loud``: runs a noisy form whose
    noise is some times the original's; ``unfused``: runs the original with no product fused with a sum."""

    folder: Path = Path()
    part: Part | None = None
    data_of: Callable[[Contract, Case, int], CaseData] = build
    unordered: bool = False
    loud: WideRun | None = None
    unfused: WideRun | None = None


def expect(
    contract: Contract,
    case: Case,
    run: Run,
    *,
    precise: WideRun | None = None,
    noisy: WideRun | None = None,
    how: Asking | None = None,
) -> Expected:
    """Run the original twice (see Once), each with its own poison; and, when asked for what that takes, on perturbed
    inputs.

    ``precise`` runs the widened original on :func:`widened_data`, ``noisy`` its noisy form; a contract that names a
    reference function uses that instead of the former. What ``run`` raises passes through: the baseline failed.
    """
    how = how or Asking()
    data_of, part = how.data_of, how.part
    names, layouts = outputs(contract, case), layouts_of(contract)
    wider = {name: layout.widened() for name, layout in layouts.items()}

    def picked(found: Mapping[str, Array], layouts: Mapping[str, Layout] = layouts) -> Mapping[str, Array]:
        return part.picked(found) if part is not None else apart({name: found[name] for name in names}, layouts)

    data = [data_of(contract, case, i) for i in range(1 if isinstance(run, Once) else 2)]
    runs = [picked(run(case, d)) for d in data]
    first = runs[0]
    began = [picked(d.arrays) for d in data]
    unwritten = {n: _never_written(contract, n, [d[n] for d in began], [r[n] for r in runs]) for n in first}
    spread = {n: _spread([r[n] for r in runs], unwritten[n]) for n in first}

    def exact() -> Mapping[str, Array] | None:
        if contract.reference is not None:
            told = reference_outputs(contract, case, build(contract, case), how.folder)
            return told if part is None else part.picked(told)
        found = precise(case, widened_data(data_of(contract, case, 0))) if precise is not None else None
        return None if found is None else picked(found, wider)

    def scale(more: int) -> Scale:
        shaken = (
            iter(()) if contract.tolerance.of_result else perturbed(contract, case, data_of(contract, case, 0), more)
        )
        return Scale(first, lambda data: picked(run(case, data)), shaken)

    def noise(truth: Mapping[str, Array], which: Samples) -> Noise | None:
        if noisy is None:
            return None
        wide = widened_data(data_of(contract, case, 0))
        narrow = any(_floats(a) and a.dtype.itemsize < 8 for a in first.values())
        numbers = which(NOISY_RUNS if narrow else NOISY_DOUBLES)
        found = [noisy(case, nudged(contract, case, wide, number)) for number in numbers]
        runs = [picked(run, wider) for run in found if run is not None]
        return Noise.of(first, runs, truth) if runs else None

    expected = Expected(first, spread, unwritten, exact, scale, noise)
    expected.part, expected.unordered, expected.layouts = part, how.unordered, layouts
    if how.unfused is not None:
        expected.unfusing = partial(_unfused, contract, case, how, picked)
    if how.loud is not None:
        expected.louder = partial(_loud, contract, case, how, lambda found: picked(found, wider))
    return expected


def _unfused(
    contract: Contract, case: Case, how: Asking, picked: Callable[[Mapping[str, Array]], Mapping[str, Array]]
) -> Mapping[str, Array] | None:
    found = how.unfused(case, how.data_of(contract, case, 0)) if how.unfused is not None else None
    return None if found is None else picked(found)


def _loud(
    contract: Contract,
    case: Case,
    how: Asking,
    picked: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    number: int,
) -> Mapping[str, Array] | None:
    """An answer of the original that rounds some times as badly as it does; None where there is none."""
    data = nudged(contract, case, widened_data(how.data_of(contract, case, 0)), number)
    found = how.loud(case, data) if how.loud is not None else None
    return None if found is None else picked(found)


# ---------------------------------------------------------------- parts


def _never_written(contract: Contract, name: str, poisons: list[Array], got: list[Array]) -> Array:
    if contract.argument(name).role is not Role.OUT or (len(poisons) and same_bits(poisons[0], poisons[-1]).any()):
        return np.zeros(got[0].shape, dtype=bool)  # an input of its own: what is left alone holds its old value
    untouched = same_bits(got[0], poisons[0])
    for poison, array in zip(poisons[1:], got[1:], strict=True):
        untouched &= same_bits(array, poison)
    return untouched


def _spread(runs: list[Array], unwritten: Array) -> Array:
    if all(same_bits(runs[0], other)[~unwritten].all() for other in runs[1:]):
        return np.zeros((), dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        stack = np.stack([doubled(r) for r in runs])
        spread = np.asarray(stack.max(axis=0) - stack.min(axis=0))
    spread[unwritten | ~np.isfinite(spread)] = 0.0
    return spread


def _floats(array: Array) -> bool:
    return is_float(array.dtype)


def _magnitude(first: Array) -> Array:
    if not is_float(first.dtype):
        return np.zeros((), dtype=np.float64)
    scale = np.abs(doubled(first))
    scale[~np.isfinite(scale)] = 0.0
    return np.asarray(scale)


def _change(first: Array, moved: Array) -> Array:
    """Of an element, its change under perturbation / perturbation; 0 where either answer is no number."""
    change, unit = np.empty(first.shape), perturbation(first.dtype)
    told, before, behind = change.reshape(-1), first.reshape(-1), moved.reshape(-1)

    def compare(part: slice) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            found = np.abs(doubled(behind[part]) - doubled(before[part])) / unit
        found[~np.isfinite(found)] = 0.0
        told[part] = found

    in_chunks(first.size, compare)
    return change
