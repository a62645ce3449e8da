"""Candidates composed by chance: wrong ones are refused, right ones are not (benchmarks/adversary.py: thousands)."""

from __future__ import annotations

import random

import pytest

from benchmarks.adversary import judged, witness
from benchmarks.composing import wrong
from benchmarks.rewriting import right
from fsr.evaluation.session import session_of
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import Kernel, load_kernel
from tests.commandline import ROW_SUM


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    path = tmp_path_factory.mktemp("adversary") / "row_sum.cu"
    path.write_text(ROW_SUM)
    return load_kernel(path, None)


@pytest.fixture(scope="module")
def spec(kernel: Kernel) -> SessionSpec:
    return SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 5, str(kernel.folder))


def test_wrong_ones_with_a_witness_are_refused(kernel: Kernel, spec: SessionSpec) -> None:
    proven = 0
    for seed in range(3):
        composed = wrong(kernel.baseline, kernel.contract, random.Random(seed))
        assert composed is not None
        if witness(session_of(spec), composed):
            proven += 1
            assert not judged(spec, composed)[0], composed.parts
    assert proven


def test_a_right_one_is_not(kernel: Kernel, spec: SessionSpec) -> None:
    composed = right(kernel.baseline, random.Random(0))
    assert composed is not None
    assert composed.candidate.source != kernel.baseline.source
    assert judged(spec, composed) == (True, "promotion")


def test_composing_is_varied_and_seeded(kernel: Kernel) -> None:
    found = [wrong(kernel.baseline, kernel.contract, random.Random(seed)) for seed in range(40)]
    assert found[3] == wrong(kernel.baseline, kernel.contract, random.Random(3))
    kinds = {c.parts[1].partition(":")[0] for c in found if c is not None}
    assert {"one size", "large sizes", "sizes of a kind", "a value", "a place"} <= kinds
    assert len({c.parts[2] for c in found if c is not None}) >= 5
