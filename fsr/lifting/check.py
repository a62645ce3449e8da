"""Nothing that was lifted is believed before it answers as the original does: at sizes not watched, on test data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fsr.backends.protocol import Device, DeviceFault
from fsr.computation.computation import KEPT, Computation
from fsr.computation.expression import Fold, Load, Op, distinct
from fsr.computation.interpret import NoMeaning, TooLarge, interpret, interpret_at
from fsr.computation.types import type_of
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.hardware.dtypes import float_limits, is_float
from fsr.lifting.cases import tied_cases
from fsr.lifting.points import Mask
from fsr.lifting.sampling import shape_at, view
from fsr.records import Candidate, Case, FaultKind, Image, Role
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build

Array = np.ndarray[Any, Any]
_NOT_EXECUTED = (NoMeaning, ValueError, KeyError, IndexError, TypeError, MemoryError)
RUN_S, RUN_IN_PART_S = 5.0, 1.5  # so long may the original take; where it could be observed instead
SAMPLED = (1500, 200)  # elements that are compared where all are too many; where those are, too
MOST_WHOLE = 1 << 19  # elements of an output that are all compared
# Of one output's spacing, per operation behind an element: regrouped sums, fused products, fast intrinsics.
_ULPS = 512.0
_EXACT = ("max", "min", "neg", "fabs", "select", "argmax", "argmin")
_CUT_OTHERWISE = 0.01  # of whole numbers made of floating ones

Elements = tuple[tuple[Array, ...], Array]  # their indices, an array a dimension, and their values


class Checker:
    """Compares computations with a candidate. ``image``: its ordinary one. ``observe``: single elements of a case, for
    plans that take too long as a whole."""

    def __init__(
        self, contract: Contract, candidate: Candidate, image: Image, device: Device,
        observe: Callable[[Case], tuple[CaseData, Mapping[str, Elements]]] | None = None,
    ) -> None:  # fmt: skip
        self.contract, self.candidate, self.image, self.device = contract, candidate, image, device
        self._observe = observe
        self._known: dict[Case, tuple[CaseData, dict[str, Array]] | str] = {}
        self.refuted: tuple[dict[str, int], Mask] | None = None  # sizes of the last one, and which elements differed
        self.in_part = False  # cases are observed, no more run as a whole
        self.run_s = RUN_S

    def disagreement(self, c: Computation, cases: Sequence[Case]) -> str:
        """Where the computation and the original differ, in words; '' where they agree on all cases. Cases that are
        too large for the interpreter, or have no number in an answer, do not count; at least half must be others."""
        agreed, self.refuted = 0, None
        for case in cases:
            if case not in self._known and not self.in_part:
                self._known[case] = self._original(case)
            if self.in_part and self._observe is not None:
                found: str | None = self._differs_in_part(c, case.size_map(), *self._observe(case))
            else:
                held = self._known[case]
                if isinstance(held, str):
                    return held
                found = self._differs(c, case.size_map(), *held)
            if found:
                return found
            agreed += found is not None
        return "" if 2 * agreed >= len(cases) else "most cases are too large to execute it"

    def refutation(self, c: Computation, cases: Sequence[Case]) -> str:
        """As disagreement, on cases of few values too where a computation tells which of equals it is."""
        return self.disagreement(c, cases) or self.disagreement(c, tied_cases(c, cases))

    def _original(self, case: Case) -> tuple[CaseData, dict[str, Array]] | str:
        try:
            data = build(self.contract, case)
            launches, buffers = place(self.contract, self.candidate.plan, case, data)
            with self.device.prepare(self.image, launches, buffers) as prepared:
                prepared.run(self.run_s)
                return data, prepared.read()
        except (DeviceFault, ContractError) as fault:
            if isinstance(fault, DeviceFault) and fault.fault.kind is FaultKind.HANG and self._observe is not None:
                self.in_part = True
            return f"the original could not be run for the check: {fault}"

    def _opened(self, sizes: Mapping[str, int], data: CaseData) -> tuple[dict[str, tuple[int, ...]], dict[str, Array]]:
        shapes = {a.name: shape_at(view(a.shape), sizes) for a in self.contract.buffers()}
        inputs = {name: a.reshape(shapes[name]) for name, a in data.arrays.items()}
        inputs |= {
            name: np.asarray(s.value, np.dtype(s.dtype)) for name, s in data.scalars.items() if s.dtype != "bfloat16"
        }
        return shapes, inputs

    def _differs_in_part(
        self, c: Computation, sizes: Mapping[str, int], data: CaseData, want: Mapping[str, Elements]
    ) -> str | None:
        """As _differs, of single elements."""
        _, inputs = self._opened(sizes, data)
        for name, (at, values) in want.items():
            chosen = np.random.default_rng(2).permutation(len(values))
            try:
                _, wide, narrow = _elements(
                    c, sizes, inputs, name, [[np.asarray(a)[chosen[:count]] for a in at] for count in SAMPLED]
                )
            except TooLarge:
                return None
            except _NOT_EXECUTED as why:
                return f"it cannot be executed: {why}"
            if not wide.size or not agree(
                narrow, wide, values[chosen[: len(wide)]], cut=_cuts(c), single=_single(c, name)
            ):
                return f"{name} differs from the original"
        return "" if all(_tells(values) for _, values in want.values()) else None

    def _differs(
        self, c: Computation, sizes: Mapping[str, int], data: CaseData, want: Mapping[str, Array]
    ) -> str | None:
        """None where the case is too large for the interpreter, or tells nothing."""
        shapes, inputs = self._opened(sizes, data)
        where = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        outputs = [a.name for a in self.contract.buffers() if a.role is not Role.IN]
        asked = {name: np.asarray(want[name]).reshape(shapes[name]) for name in outputs}
        try:
            with np.errstate(all="ignore"):
                try:
                    if max((asked[name].size for name in outputs), default=0) > MOST_WHOLE and _picked(c, outputs):
                        raise TooLarge("every element of a large output")
                    wide = interpret(c, sizes, inputs, wide=True)
                    narrow = interpret(c, sizes, inputs)
                except TooLarge:
                    wide, narrow = {}, {}
                    for n in outputs:
                        choices = [_sampled(shapes[n], count) for count in SAMPLED]
                        at, wide[n], narrow[n] = _elements(c, sizes, inputs, n, choices)
                        asked[n] = asked[n][tuple(at)]
        except TooLarge:
            return None
        except _NOT_EXECUTED as why:
            return f"at {where} it cannot be executed: {why}"
        for name in outputs:
            if name not in wide:
                return f"nothing is known of {name}"
            if not agree(narrow[name], wide[name], asked[name], cut=_cuts(c), single=_single(c, name)):
                if asked[name].shape == shapes[name]:
                    self.refuted = dict(sizes), _apart(narrow[name], asked[name])
                return f"at {where} {name} differs from the original"
        return "" if all(map(_tells, asked.values())) else None


def _apart(narrow: Array, want: Array) -> Mask:
    """Which elements differ by more than rounding, about: a hint where to look."""
    if not is_float(want.dtype):
        return np.asarray(narrow.astype(want.dtype) != want)
    got, original = narrow.astype(np.float64), want.astype(np.float64)
    return ~np.isclose(got, original, rtol=_CUT_OTHERWISE, atol=1e-3, equal_nan=True)


def _tells(want: Array) -> bool:
    """Whether an answer of the original says more than that it is no number anywhere."""
    return not is_float(want.dtype) or not want.size or bool(np.isfinite(want.astype(np.float64)).any())


def _picked(c: Computation, outputs: Sequence[str]) -> bool:
    """Whether single elements of these can be computed: each is made by one statement, which data does not place."""
    made = [s for s in c.statements if s.target in outputs]
    return len(made) == len(outputs) and all(s.value is not None and s.kind != "scatter" for s in made)


def _elements(
    c: Computation, sizes: Mapping[str, int], inputs: Mapping[str, Array], name: str,
    choices: Sequence[Sequence[Array]],
) -> tuple[Sequence[Array], Array, Array]:  # fmt: skip
    """Elements of an output, in float64 and in the source's types: at the first indices of the choices that are not too
    many. Raises NoMeaning."""
    for last, at in enumerate(choices, 1):
        try:
            wide, narrow = (interpret_at(c, sizes, inputs, name, at, wide=w) for w in (True, False))
        except TooLarge:
            if last == len(choices):
                raise
            continue
        return at, wide, narrow
    raise TooLarge(name)


def _sampled(shape: Sequence[int], count: int) -> tuple[Array, ...]:
    """Indices of some elements, a half of them along the edges."""
    draw = np.random.default_rng(1)
    at = [draw.integers(0, n, count) for n in shape]
    for d, n in enumerate(shape):
        part = slice(d, count // 2, max(len(shape), 1))
        at[d][part] = draw.choice([0, 1, n - 2, n - 1], len(at[d][part])) % n
    return tuple(at)


def _cuts(c: Computation) -> bool:
    """Whether whole numbers are made of floating ones, which a fused product may put on the other side of one."""
    values = (e for s in c.statements if s.value is not None for e in distinct(s.value) if isinstance(e, Op))
    return any(
        e.name.startswith(("int", "uint")) and type_of(e.args[0]).startswith(("float", "bfloat")) for e in values
    )


def _single(c: Computation, output: str) -> bool:
    """Whether values of single precision are computed on the way to an output, which then has their errors."""
    seen, todo = {output}, [output]
    while todo:
        name = todo.pop()
        parts = [e for s in c.statements if s.target == name and s.value is not None for e in distinct(s.value)]
        if any(
            isinstance(e, Op | Fold)
            and (e.op if isinstance(e, Fold) else e.name) not in _EXACT
            and type_of(e) == "float32"
            for e in parts
        ):
            return True
        read = {e.buffer for e in parts if isinstance(e, Load) and e.buffer.startswith(("_", KEPT))}
        todo += read - seen
        seen |= read
    return False


def agree(narrow: Array, wide: Array, want: Array, *, cut: bool = False, single: bool = False) -> bool:
    """Whether the original's answer is the computation's: whole numbers to the last bit (``cut``: a few of them but for
    one, see _cuts), floating ones within the error that another order of operations makes, of ``single`` precision on
    the way. Judged by an element's size and by its row's."""
    if not is_float(want.dtype):
        if narrow.shape != want.shape:
            return False
        bits = f"u{want.itemsize}"
        apart = narrow.astype(bits) - want.view(bits)
        near = (apart == 1) | (apart == np.iinfo(bits).max)
        few = cut and near.sum() <= max(1, _CUT_OTHERWISE * near.size)
        return bool(((apart == 0) | (few & near)).all())
    got, original = wide.astype(np.float64), want.astype(np.float64)
    own = narrow.astype(np.float64)
    if got.shape != original.shape:
        return False
    finite = np.isfinite(original) & np.isfinite(got)
    if not (np.isnan(original) == np.isnan(own))[~finite].all() or not np.isfinite(own[finite]).all():
        return False
    if not finite.any():
        return True
    size = np.abs(original[finite])
    typical = float(np.sqrt(np.mean(size**2)))
    got, original, own = got[finite], original[finite], own[finite]
    eps = max(float_limits(want.dtype).eps, float_limits(np.dtype(np.float32)).eps if single else 0.0)
    bound = _ULPS * eps * np.maximum(size, typical) + 4 * np.abs(own - got)
    return bool((np.abs(original - got) <= bound).all())
