"""The noisy form of a kernel: it compiles whatever people write, and errs as much as it is told to."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.protocol import Buffer
from fsr.backends.select import recording_backend
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role
from fsr.testgen.widen import noisy_candidate
from tests.transform.conftest import open_host_device

N = 512
PLAN = Plan((Launch("k", (str(N // 64), "1", "1"), ("64", "1", "1"), "0", ("x", "y")),))
SPELT = {
    "vectors of double": "double3 v; v.x = x[i]; v.y = v.x * 1.5; v.z = x[i] - v.y; double2 w = make_double2(v.z, v.y);"
    " y[i] = w.x + 0.5 * w.y;",
    "functions of std": "double a = std::sqrt(x[i]); y[i] = std::fabs(a * a) * 0.75 + std::exp(a - a);",
    "counting up": "double c = x[i]; c++; ++c; c--; y[i] = c * 0.3;",
}


def answers(source: str, times: int, x: np.ndarray) -> np.ndarray:
    """What a noisy form gives."""
    form = noisy_candidate(Candidate(source, PLAN), times)
    assert form is not None
    image = recording_backend().toolchain("").compile(form)
    assert isinstance(image, Image), image.log
    device = open_host_device()
    launch = ConcreteLaunch(form.plan.launches[0].entry, (N // 64, 1, 1), (64, 1, 1), 0, ("x", "y"))
    try:
        with device.prepare(image, [launch], [Buffer("x", x, Role.IN), Buffer("y", x * 0, Role.OUT)]) as prepared:
            prepared.reset()
            prepared.run(20.0)
            found: np.ndarray = prepared.read()["y"]
            return found
    finally:
        device.close()


@pytest.mark.parametrize("name", SPELT)
def test_kernels_of_double_err_in_their_last_bits(name: str) -> None:
    x = np.random.default_rng(1).uniform(0.5, 2.0, N)
    source = f"__global__ void k(const double *x, double *y) {{ int i = blockIdx.x * 64 + threadIdx.x; {SPELT[name]} }}"
    one, four = answers(source, 1, x), answers(source, 4, x)
    right = {
        "vectors of double": x - 1.5 * x + 0.75 * x,
        "functions of std": 0.75 * x + 1,
        "counting up": 0.3 * (x + 1),
    }
    off = [np.abs(got - right[name]).max() for got in (one, four)]
    assert 0.0 < off[0] < 4e-15
    assert off[0] < off[1] < 2e-14


def test_floats_err_as_many_times_as_much() -> None:
    x = np.random.default_rng(1).uniform(0.5, 2.0, N)
    source = (
        "__global__ void k(const float *x, float *y) { int i = blockIdx.x * 64 + threadIdx.x; y[i] = x[i] * 0.75f; }"
    )
    off = [np.abs(answers(source, times, x) / (x * 0.75) - 1).max() for times in (1, 4)]
    assert off[0] < 2.0**-24
    assert 3.5 < off[1] / off[0] < 4.5
