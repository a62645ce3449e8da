"""What is told of an original that fails one of its own cases."""

from __future__ import annotations

from fsr.errors import BaselineError, UnorderedError
from fsr.evaluation.alignments import lacking
from fsr.evaluation.spec import SessionSpec
from fsr.records import Case, Fault, FaultKind
from fsr.source.tokens import tokenize
from fsr.testgen.cases import HOST_ELEMENTS
from fsr.testgen.fitting import elements

_OF_ORDER = (FaultKind.NONDETERMINISTIC, FaultKind.RACE, FaultKind.DIFFERS)  # how threads fail that nothing orders
_IN_STEP = (
    "; it has volatile memory and no __syncwarp(): lanes that read what others of their warp wrote need one before and "
    "after, as they need not run in step since Volta (CUDA C++ Programming Guide, Independent Thread Scheduling)"
)


def baseline_error(spec: SessionSpec, case: Case, fault: Fault) -> BaselineError:
    """The error, with what to do about it."""
    sizes = ", ".join(f"{k}={v}" for k, v in case.sizes) or "no sizes"
    room = fault.kind is FaultKind.OUT_OF_BOUNDS and "' has " in fault.detail
    misaligned = fault.kind is FaultKind.MISALIGNED or "misaligned" in fault.detail.lower()  # as GPUs say it
    error = (UnorderedError if fault.kind in _OF_ORDER else BaselineError)(
        f"the kernel fails its own tests: {fault.kind}: {fault.detail}",
        expected="a kernel that is right before it is made faster",
        where=f"case {case.name!r} ({sizes}; values {case.family})" + (f", line {fault.line}" if fault.line else ""),
        fix=(_promise(spec) if misaligned else "")
        + (_smaller(spec, case) if fault.kind is FaultKind.HANG else "")
        + "correct the kernel, or narrow the sizes and values in its contract"
        + (", or state in its shape what the callers allocate, where that is more" if room else "")
        + (_IN_STEP if fault.kind is FaultKind.NONDETERMINISTIC and _in_step(spec) else ""),
    )
    error.kind = fault.kind
    return error


def is_large(spec: SessionSpec, case: Case) -> bool:
    """Whether a case is larger than those that are drawn small, as where a contract fixes its sizes."""
    return elements(spec.contract, case.size_map()) > HOST_ELEMENTS


def _smaller(spec: SessionSpec, case: Case) -> str:
    """What to do about a kernel that ends, but too late where it runs; '' where its case is small."""
    advice = "choose smaller sizes, if it is only too slow for this device; otherwise "
    return advice if is_large(spec, case) else ""


def _promise(spec: SessionSpec) -> str:
    """What to write where callers give pointers that are more aligned than the contract promises; '' for none."""
    found = lacking(spec.baseline, spec.contract)
    told = " and ".join(f"alignment = {needed} for {name}" for name, needed in found.items())
    return f"write {told} in its contract, if all callers pass such addresses; otherwise " if told else ""


def _in_step(spec: SessionSpec) -> bool:
    """Whether the kernel seems to expect that lanes of a warp run in step."""
    used = {t.text for t in tokenize(spec.baseline.source) if t.kind == "name"}
    return "volatile" in used and "__syncwarp" not in used
