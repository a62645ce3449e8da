"""What a contract's function of inputs makes for large cases, made ahead where processes have nothing else to do.

The sizes that are timed, those beside them, and the largest that are tested: each process that needs them finds them
kept (:mod:`fsr.testgen.kept_made`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.evaluation.on_device import STEPS
from fsr.evaluation.session import TIMED_SETS
from fsr.evaluation.spec import SessionSpec
from fsr.records import Case
from fsr.testgen import cases as case_lists
from fsr.testgen.generated import most_elements
from fsr.testgen.large import large_cases, largest_case
from fsr.testgen.values import build

LARGE = 2  # of each step


@dataclass(frozen=True, slots=True)
class MakeRequest:
    """Payload of ``make_task``."""

    spec: SessionSpec
    case: Case


def cases_ahead(spec: SessionSpec) -> list[Case]:
    """The cases that are worth making ahead, those first that are needed first; none without such a function, or a
    folder to keep them in."""
    contract, seed = spec.contract, spec.seed
    if contract.inputs is None or not contract.inputs.kept:
        return []
    timed = case_lists.timed_cases(contract, seed, TIMED_SETS)
    found = [*timed[::TIMED_SETS], *reversed(case_lists.held_out_timed_cases(contract, seed)), *timed]
    for most in dict.fromkeys(most_elements(contract, step) for step in STEPS):
        found += [largest_case(contract, seed, most), *reversed(large_cases(contract, seed, most))][:LARGE]
    return list(dict.fromkeys(found))


def make_task(request: MakeRequest) -> None:
    """Make a case's inputs, for them to be kept."""
    build(request.spec.contract, request.case, drawn=True)
