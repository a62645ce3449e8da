"""What the search's own actions write must pass the static guard: the guard is for everybody's candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.guard.check import guard
from fsr.records import Candidate
from fsr.search.proposal import moves_of
from fsr.source.file import KernelFile
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from fsr.transform.registry import all_actions

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cu"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_no_action_s_result_is_refused(path: Path) -> None:
    contract = load_contract(path)
    source = KernelFile.read(path).cut(contract.plan.launches[0].entry).text
    baseline = Candidate(source, contract.plan)
    subject = Subject(baseline, parse_kernels(source), contract)
    moves = moves_of(subject, all_actions(), on_fault=lambda name, fault: None)  # actions have tests of their own
    assert len(moves) >= 5
    for action, move in moves:
        fault = guard(action.apply(subject, move), baseline)
        assert fault is None, f"{move.name}: {fault}"
