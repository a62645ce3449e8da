"""How much of a run's budget is kept for promotion."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import load_kernel
from fsr.runs.refining import promotion_reserve

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "device", "budget_s", "reserve_s"),
    [
        ("softmax", "cuda:0", 60.0, 12.0),  # 67 MB at the timed size: its usual share
        ("saxpy", "cuda:0", 60.0, 20.13),  # 403 MB
        ("saxpy", "cuda:0", 300.0, 30.0),
        ("saxpy", "host", 60.0, 12.0),
        ("saxpy", "cuda:0", 5.0, 2.0),  # the largest share
    ],
)
def test_large_timed_sizes_leave_more_of_the_budget_to_promotion(
    name: str, device: str, budget_s: float, reserve_s: float
) -> None:
    kernel = load_kernel(EXAMPLES / f"{name}.cu")
    spec = SessionSpec(kernel.contract, kernel.baseline, device, "sm_90", 0)
    assert promotion_reserve(spec, budget_s) == pytest.approx(reserve_s, rel=1e-3)
