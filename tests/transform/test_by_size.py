"""Two candidates in one plan: each runs where it should, and their texts stand side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice
from fsr.contract.model import Argument, Contract, Size
from fsr.evaluation.testing import Runnable, run_once
from fsr.expressions import evaluate
from fsr.records import Candidate, Case, Image, Launch, Plan, Role, Scratch
from fsr.source.items import parse_items
from fsr.testgen.values import build
from fsr.transform.by_size import by_size, idle_kernels

HELPERS = """#define SCALE 2
__device__ float twice(float v) { return SCALE * v; }
"""
SLOW = """__device__ float step(float v) { return twice(v) + 1.0f; }
template <typename T> __global__ void k(T *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = step(x[threadIdx.x]); }
"""
FAST = SLOW.replace("+ 1.0f", "+ 10.0f")  # so that it shows which of them ran
ONE = ("1", "1", "1")
PLAN = Plan((Launch("k<float>", ONE, ("64", "1", "1"), "0", ("x", "n")),))
CONTRACT = Contract(
    "k<float>", (Size("n", 1, 64, (64,)),),
    (Argument("x", "float32", Role.INOUT, ("n",)), Argument("n", "int32", Role.SCALAR, value="n")), PLAN,
)  # fmt: skip


@pytest.fixture(scope="module")
def host() -> Iterator[HostDevice]:
    found = HostDevice()
    yield found
    found.close()


def ran(host: HostDevice, candidate: Candidate, n: int) -> np.ndarray:
    image = HostToolchain().compile(candidate)
    assert isinstance(image, Image), image
    case = Case("one", (("n", n),), "ones", 1)
    return run_once(Runnable(host, image, candidate.plan, CONTRACT), case, build(CONTRACT, case))["x"]


WHOLE = HELPERS + FAST


@pytest.mark.parametrize(
    "fast",
    [WHOLE, FAST.replace("twice(v)", "2 * v"), WHOLE.replace("SCALE 2", "SCALE 4")],
    ids=["a function differs", "a helper is gone", "a macro differs"],
)
def test_each_runs_where_the_condition_says(host: HostDevice, fast: str) -> None:
    one, other = Candidate(fast, PLAN, ("wide@kernel",)), Candidate(HELPERS + SLOW, PLAN)
    both = by_size(one, other, "n % 4 == 0")
    assert both is not None
    assert both.actions == ("wide@kernel", "by-size@plan[where=n%4==0]")
    for n in (8, 9):
        assert np.array_equal(ran(host, both, n), ran(host, one if n == 8 else other, n))


def test_what_is_alike_stands_once() -> None:
    both = by_size(Candidate(HELPERS + FAST, PLAN), Candidate(HELPERS + SLOW, PLAN), "n >= 8")
    assert both is not None
    names = [name for item in parse_items(both.source) for name in item.names]
    assert sorted(names) == ["SCALE", "k", "k_2", "step", "step_2", "twice"]
    assert [launch.entry for launch in both.plan.launches] == ["k<float>", "k_2<float>"]


def test_scratch_of_both_is_kept_apart() -> None:
    launch = replace(PLAN.launches[0], args=("s", "n"))
    plan = Plan((launch,), (Scratch("s", "float32", "n * 2"),))
    both = by_size(Candidate(HELPERS + FAST, plan), Candidate(HELPERS + SLOW, plan), "n >= 8")
    assert both is not None
    assert [launch.args[0] for launch in both.plan.launches] == ["s", "s_2"]
    assert [[evaluate(s.count, {"n": n}) for s in both.plan.scratch] for n in (4, 8)] == [[1, 8], [16, 1]]


OPEN = "namespace a { __global__ void k(float *x, int n) "


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (OPEN + "{ x[0] = n; } }", OPEN + "{} }"),
        ("#if 1\n#define A 1\n#endif\n" + FAST, "#if 1\n#define A 2\n#endif\n" + SLOW),
        ("#ifdef B\n#define A 1\n#endif\n" + FAST, "#if 1\n#define A 1\n#endif\n" + SLOW),
    ],
    ids=["a namespace", "in a condition", "a condition"],
)
def test_what_cannot_stand_in_one_file_is_refused(fast: str, slow: str) -> None:
    assert by_size(Candidate(fast, PLAN), Candidate(slow, PLAN), "n >= 8") is None


def test_a_condition_that_makes_an_expression_too_long_is_refused() -> None:
    launch = replace(PLAN.launches[0], grid=("n + " * 120 + "1", "1", "1"))
    plan = Plan((launch,))
    assert by_size(Candidate(FAST, plan), Candidate(SLOW, plan), "n % 4 == 0") is None


def test_kernels_of_sizes_that_are_not_timed_are_idle() -> None:
    one, other = Candidate(HELPERS + FAST, PLAN), Candidate(HELPERS + SLOW, PLAN)
    both, rest = by_size(one, other, "n == 64"), by_size(one, other, "n < 8")
    assert both is not None
    assert rest is not None
    assert idle_kernels(both.plan, CONTRACT) == {"k_2"}
    assert idle_kernels(rest.plan, CONTRACT) == {"k"}
    assert not idle_kernels(PLAN, CONTRACT)
