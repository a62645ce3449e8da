"""What a device is given for a case: alignment as promised, scratch poisoned, shared memory once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.protocol import DeviceFault
from fsr.contract.model import Argument, Contract, Size
from fsr.records import Case, Launch, Plan, Role, ScalarValue, Scratch
from fsr.testgen.placing import place
from fsr.testgen.values import build

PLAN = Plan(
    (Launch("k", ("ceil_div(n, 32)", "1", "1"), ("32", "1", "1"), "4 * n", ("x", "part", "y", "n")),),
    (Scratch("part", "float32", "2 * n"), Scratch("count", "int32", "1", zeroed=True)),
)
CONTRACT = Contract(
    "k",
    (Size("n", 0, 9999, (5,)),),
    (
        Argument("x", "float32", Role.IN, ("n",), alignment=16),
        Argument("y", "float64", Role.OUT, ("n",)),
        Argument("n", "int32", Role.SCALAR, (), "n"),
    ),
    PLAN,
    aliasing=(("x", "y"),),
)


def test_buffers_and_launches_of_an_ordinary_case() -> None:
    case = Case("c", (("n", 70),), "normal", 1)
    (launch,), buffers = place(CONTRACT, PLAN, case, build(CONTRACT, case, 1), 1)
    assert (launch.grid, launch.block, launch.shared_bytes) == ((3, 1, 1), (32, 1, 1), 280)
    assert launch.args == ("x", "part", "y", ScalarValue("int32", 70))
    by_name = {b.name: b for b in buffers}
    assert {n: b.role for n, b in by_name.items()} == {"x": Role.IN, "y": Role.OUT, "part": None, "count": None}
    assert all(b.alignment_bytes == 256 for b in buffers)
    assert by_name["part"].array.shape == (140,)
    assert np.isnan(by_name["part"].array).all()
    assert by_name["count"].zeroed
    assert by_name["count"].array.tolist() == [0]


def test_an_alignment_case_gives_each_pointer_what_the_contract_promises_it() -> None:
    case = Case("c", (("n", 70),), "normal", 1, alignment_bytes=4)
    _, buffers = place(CONTRACT, PLAN, case, build(CONTRACT, case))
    assert {b.name: b.alignment_bytes for b in buffers} == {"x": 16, "y": 8, "part": 256, "count": 256}


def test_aliased_arguments_become_one_buffer() -> None:
    case = Case("c", (("n", 70),), "normal", 1, aliased=("x", "y"))
    (launch,), buffers = place(CONTRACT, PLAN, case, build(CONTRACT, case))
    assert launch.args[:3] == ("x", "part", "x")
    assert [b.name for b in buffers] == ["x", "part", "count"]
    assert buffers[0].role is Role.INOUT


def test_an_empty_size_launches_nothing() -> None:
    case = Case("c", (("n", 0),), "normal", 1)
    launches, buffers = place(CONTRACT, PLAN, case, build(CONTRACT, case))
    assert launches == ()
    assert buffers[0].array.size == 0


@pytest.mark.parametrize("count", ["2 ** 60", "0 - 5"])
def test_scratch_that_no_memory_holds_is_a_fault_of_the_plan(count: str) -> None:
    plan = replace(PLAN, scratch=(Scratch("s", "float32", count),))
    case = Case("c", (("n", 70),), "normal", 1)
    with pytest.raises(DeviceFault, match="scratch buffer s of"):
        place(CONTRACT, plan, case, build(CONTRACT, case))
