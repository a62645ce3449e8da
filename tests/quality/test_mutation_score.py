"""How good are the tests? Faults are planted in right kernels; the tests that candidates meet must find them.

A sample of each: benchmarks/mutations.py plants all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.evaluation.mutation import SURVIVED, Bench
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.mutation.mutants import mutants, sampled
from fsr.runs.kernel import load_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["reduction", "transpose"])
def test_planted_faults_are_found(name: str) -> None:
    kernel = load_kernel(EXAMPLES / f"{name}.cu", None)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 1, str(EXAMPLES)))
    try:
        fates = list(Bench(session, kernel.baseline).fates(sampled(mutants(kernel.baseline), 12, 1)))
    finally:
        session.close()
    assert len(fates) == 12
    assert [(f.mutant.name, f.why) for f in fates if f.kind == SURVIVED] == []
