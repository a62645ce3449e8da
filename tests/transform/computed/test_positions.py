"""Schedules of computations that ask for a position: a scalar of which sizes tell the limits, which the kernel is
given and a launch is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.transform.protocol import Subject
from tests.lifting.test_positions import KERNEL, SOFTMAX
from tests.transform.computed.test_families import FAMILY
from tests.transform.conftest import subject_of


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("at", [0, 1, 6, 16])
def test_rows_up_to_a_position_are_folded(runner, at: int) -> None:
    subject = subject_of(KERNEL.replace("BODY", SOFTMAX))
    computation = lift(subject.contract, subject.candidate).computation
    subject = Subject(subject.candidate, subject.kernels, subject.contract, computation=computation)
    moves = list(FAMILY["fold-rows"].moves(subject))
    assert moves
    args = tuple(replace(a, value=str(at)) if a.name == "at" else a for a in subject.contract.args)
    contract = replace(subject.contract, args=args)
    for move in moves[:3]:
        changed = FAMILY["fold-rows"].apply(subject, move)
        assert all("at" not in text for launch in changed.plan.launches for text in (*launch.grid, launch.shared_bytes))
        sizes = {"heads": 3, "steps": 17}
        want, got = (runner.outputs(c, contract, sizes) for c in (subject.candidate, changed))
        assert got["att"] == pytest.approx(want["att"], rel=1e-5)
