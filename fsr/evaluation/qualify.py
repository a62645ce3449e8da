"""Is the original right to begin with? What fails its own tests cannot be made faster."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.backends.protocol import Array, DeviceFault
from fsr.contract.model import Contract
from fsr.errors import BaselineError
from fsr.evaluation.session import Session
from fsr.evaluation.watching import SILENT, watch, watched_fault
from fsr.features.roofline import MustMove
from fsr.hardware.dtypes import is_float
from fsr.records import Case, Fault, FaultKind, Role
from fsr.sandbox.confine import support
from fsr.testgen import generated
from fsr.testgen.compare import Mismatch, compare_baseline, flushes, tolerance
from fsr.testgen.families import SPIKE
from fsr.testgen.oracle import Expected
from fsr.testgen.scalars import scalars_of
from fsr.testgen.values import build, same_bits

NOISE_FLOORS = 100.0  # repeated runs may differ by this many rounding floors (atomics in any order do)
UNLIKE_FLOAT64 = ("near-overflow", SPIKE, "denormals", "deep denormals")  # where a float overflows or loses bits


def check_baseline(session: Session, cases: list[Case]) -> list[str]:
    """Run the original on every case, repeat it, record some. Returns notes worth telling.

    Raises BaselineError naming the case."""
    pace = session.pace(session.spec.baseline.plan)
    left = _LeftAlone()
    for drawn in cases:
        case = session.original.answerable(drawn)
        if pace.over(case) or not session.original.counts(case):
            continue
        started = time.monotonic()
        expected = _answered(session, case)
        noisy = _noise(session, case, expected)
        if noisy is not None:
            raise session.original.error(case, noisy)
        differs = _differs(session, case, expected)
        if differs is not None:
            raise session.original.error(case, Fault(FaultKind.DIFFERS, str(differs)))
        left.see(session.contract, case, expected)
        pace.took(case, time.monotonic() - started)
    left.require_something()
    if session.spec.predicted:  # beside a GPU it would wait for it: a promotion looks
        session.coverage_cases()
    told = [*left.notes(), *_made_together(session), *_watch_some(session, cases), *_uncontained(session)]
    return [*told, *session.notes]


def _made_together(session: Session) -> list[str]:
    """What is to be known of the contract's function of inputs."""
    case = session.spec.smoke_case()
    other = replace(case, seed=case.seed + 1)
    return generated.notes(session.contract, (case, other), scalars_of(session.contract, case))


class _LeftAlone:
    """Elements of outputs that the original never writes. Borders that it leaves alone it leaves at all sizes; a launch
    that is too small for some sizes, or has two of them mixed up, shows by outputs that are written whole at others."""

    def __init__(self) -> None:
        self._whole: dict[str, Case] = {}
        self._part: dict[str, tuple[Case, int, int]] = {}
        self._seen, self._wrote = 0, False

    def see(self, contract: Contract, case: Case, expected: Expected) -> None:
        """Note what one case tells."""
        if expected.part is not None:
            self._wrote = True  # of parts it is not asked
        elif any(a.size for a in expected.arrays.values()):
            self._seen += 1
            self._wrote = self._wrote or _writes(contract, case, expected)
        contract = contract.apart()
        for name, unwritten in expected.unwritten.items():
            count, size = int(np.count_nonzero(unwritten)), expected.arrays[name].size
            if contract.argument(name).role is not Role.OUT or size < 2 or expected.part is not None:
                continue
            if count:
                self._part.setdefault(name, (case, count, size))
            else:
                self._whole.setdefault(name, case)

    def require_something(self) -> None:
        """Raises BaselineError where no test changed anything: whatever does nothing, too, would pass them."""
        if self._seen > 1 and not self._wrote:
            raise BaselineError(
                f"the kernel changes no element of any output in any of {self._seen} tests",
                expected="a kernel that writes its outputs",
                where="the contract's launch and arguments",
                fix="look for a grid of no blocks, a scalar that turns it off, and __device__ variables that host code "
                "fills: those are 0 unless [args] tells of them, by their names",
            )

    def notes(self) -> list[str]:
        """A sentence for each output that is written in part: everywhere, or in one case and whole in another."""
        return [told for name in self._part for told in self._told(name)]

    def _told(self, name: str) -> Iterator[str]:
        case, count, size = self._part[name]
        left = f"at {_sizes(case)} the kernel leaves {count} of {size} elements of {name} as they were"
        if name not in self._whole:
            yield (
                f"{left}, and some in every test, where 'out' says that all are written: correct its shape, or say "
                'role = "inout" where callers rely on what stands there. Candidates leave them alone too'
            )
        elif self._whole[name].sizes != case.sizes:
            yield (
                f"{left}, at {_sizes(self._whole[name])} none: is its launch right at all sizes? Candidates are held "
                "to it"
            )


def _writes(contract: Contract, case: Case, expected: Expected) -> bool:
    """Whether an element of an output is another than it was before."""
    own = (left for name, left in expected.unwritten.items() if contract.argument(name).role is Role.OUT)
    if any(left.size and not left.all() for left in own):
        return True
    before = build(contract, case).apart().arrays
    return any(not same_bits(a, before[name]).all() for name, a in expected.arrays.items())


def _sizes(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.sizes)


def _answered(session: Session, case: Case) -> Expected:
    try:
        return session.original.expected(case)
    except BaselineError as error:
        fault = watched_fault(session, case) if error.kind == FaultKind.GUARD else None
        raise session.original.error(case, fault) if fault is not None else error from None
    except DeviceFault as fault:
        if fault.fault.kind is not FaultKind.MEMORY:
            raise
        raise BaselineError(
            f"a test of the kernel does not fit this machine: {fault.fault.detail}",
            expected="room for its buffers", where=f"case {case.name!r}",
            fix="free memory, lift the limit that stands in the way (ulimit -a), or lower the sizes in the contract",
        ) from None  # fmt: skip


def _differs(session: Session, case: Case, expected: Expected) -> Mismatch | None:
    """Where the original disagrees with the reference that its contract names. Without one the float64 answer is the
    original's own, and values near overflow are meant to differ from it."""
    if session.contract.reference is None or case.family in UNLIKE_FLOAT64:
        return None
    return next(iter(compare_baseline(session.contract, case, expected)), None)


def _uncontained(session: Session) -> list[str]:
    found = support()
    if found.complete or not session.spec.backend.confined:
        return []
    return [f"candidates run on this CPU uncontained: the kernel offers no {found.missing} (see fsr doctor)"]


def _noise(session: Session, case: Case, expected: Expected) -> Fault | None:
    """Repeated runs that differ by more than rounding can explain."""
    flushed = flushes(session.spec.baseline)
    for name, spread in expected.spread.items():
        if not np.any(spread):
            continue
        array = expected.arrays[name]
        relative, absolute = tolerance(session.contract, case, array.dtype, flushed=flushed)
        allowed = absolute + NOISE_FLOORS * relative * np.asarray(expected.scale[name])
        if not is_float(array.dtype) or session.contract.tolerance.exact or np.any(spread > allowed):
            return Fault(
                FaultKind.NONDETERMINISTIC, f"{name} differs by up to {float(np.max(spread)):.3g} between equal runs"
            )
    return None


def _watch_some(session: Session, cases: list[Case]) -> list[str]:
    """Watch the original on the host device: out of bounds, races, undefined reads, what depends on an order."""
    failure, said = watch(session, session.spec.baseline, cases)
    if failure is None:
        return [] if said == SILENT else [f"the kernel was not checked for races and bounds: {said}"]
    fault = failure.fault or Fault(
        FaultKind.NONDETERMINISTIC, f"it depends on the order of blocks and threads: {failure.mismatch}"
    )
    raise session.original.error(failure.case, fault)


def must_move(session: Session) -> MustMove | None:
    """The bytes that a run at the timed sizes has to move: all inputs once, all outputs once; the geometric mean over
    several timed configurations, as their times are. None on the host device, for contracts in which an input is
    indexed by another, since it may then be read in part only, and where configurations differ in whether their
    outputs fit the L2, since no mean holds for both."""
    contract = session.contract
    indexed = any(a.constraints.high is not None and a.dtype.startswith(("int", "uint")) for a in contract.buffers())
    if session.spec.predicted or indexed:
        return None
    configurations = [data.arrays for _, data in session.timed()]
    read, written, both = (
        [_bytes_of(contract, arrays, roles) for arrays in configurations]
        for roles in ((Role.IN, Role.INOUT), (Role.OUT, Role.INOUT), (Role.INOUT,))
    )
    if len(written) > 1 and max(written) > (session.device.info.l2_bytes or 0):
        return None
    sums = (read, written, [2.0 * n for n in both])
    moved = MustMove(*(math.prod(own) ** (1.0 / len(own)) for own in sums))
    return moved if moved.total_bytes else None


def _bytes_of(contract: Contract, arrays: Mapping[str, Array], roles: Sequence[Role]) -> float:
    return float(sum(arrays[a.name].nbytes for a in contract.buffers() if a.role in roles))
