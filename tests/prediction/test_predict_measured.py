"""Profiles of candidates whose times were measured on an H200 (CUDA 13.0): predictions come in the measured order.

Each file of recorded/ holds one kernel's original, its fastest candidate and others between them, spread evenly over
the distinct times of one search; the profiles are the host device's recordings, the resources those of NVRTC 13.0.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fsr.backends.protocol import AccessProfile, AccessSite, LaunchProfile
from fsr.hardware.gpus import H200
from fsr.prediction.predict import ERROR_FACTOR, predict
from fsr.records import Resources

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
DEFAULTS = {"unique_sectors": 0.0, "sectors": 0.0, "wavefronts": 0.0}


def predicted_ns(candidate) -> float:
    launches = []
    for launch in candidate["launches"]:
        sites = tuple(AccessSite(**(DEFAULTS | site)) for site in launch["sites"])
        launches.append(LaunchProfile(**(launch | {"sites": sites})))
    resources = {entry: Resources(**needs) for entry, needs in candidate["resources"].items()}
    return predict(AccessProfile(tuple(launches)), resources, H200, candidate["footprint"]).time_ns


def ranks(values) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)


def times(path: Path) -> tuple[list[float], list[float], list[str]]:
    candidates = json.loads(path.read_text(encoding="utf-8"))
    measured = [c["measured_ns"] for c in candidates]
    return measured, [predicted_ns(c) for c in candidates], [c["name"] for c in candidates]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_predictions_come_in_the_measured_order(path) -> None:
    measured, predicted, _ = times(path)
    assert len(measured) >= 7
    assert np.corrcoef(ranks(measured), ranks(predicted))[0, 1] >= 0.7


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_winners_speed_up_is_predicted_within_the_error_factor(path) -> None:
    measured, predicted, names = times(path)
    original = names.index("original")
    found, true = predicted[original] / predicted[0], measured[original] / measured[0]
    assert abs(math.log(found / true)) < math.log(ERROR_FACTOR)


def test_ratios_are_right_within_the_error_factor_nine_times_in_ten() -> None:
    within = []
    for path in RECORDED:
        measured, predicted, _ = times(path)
        errors = [math.log(p / m) for p, m in zip(predicted, measured, strict=True)]
        within += [abs(a - b) < math.log(ERROR_FACTOR) for i, a in enumerate(errors) for b in errors[:i]]
    assert sum(within) >= 0.85 * len(within)
