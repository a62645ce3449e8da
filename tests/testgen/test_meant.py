"""Launches that a candidate may have been written for: only where its source cannot fit the original's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.contract.load import load_contract
from fsr.errors import UsageError
from fsr.records import ScalarArgument
from fsr.source.file import KernelFile
from fsr.testgen.candidate_file import stated_plan
from fsr.testgen.meant import MOST, meant_plans
from tests.commandline import ROW_SUM

CONTRACT = load_contract(KernelFile.from_text(ROW_SUM, "k.cu"))  # grid ceil_div(rows, 64), block 64
HEAD = "__global__ void row_sum(const float *x, float *y, int rows, int cols) "


def launches(body: str) -> list[tuple[str, str, str]]:
    plans = meant_plans(HEAD + body, CONTRACT)
    assert len(plans) <= MOST
    assert all(plan.launches[0].args == CONTRACT.plan.launches[0].args for plan in plans)
    return [(p.launches[0].grid[0], p.launches[0].block[0], p.launches[0].shared_bytes) for p in plans]


def test_a_block_that_the_source_holds_as_a_number_comes_first() -> None:
    found = launches("{ int r = blockIdx.x * 0x80u + threadIdx.x; if (r < rows) y[r] = x[r * cols]; }")
    assert found[0] == ("ceil_div(rows, 128)", "128", "0")
    assert ("rows", "128", "0") in found
    assert ("rows", "64", "0") in found


def test_dynamic_shared_memory_that_the_original_does_not_have_is_given_by_thread() -> None:
    loop = "for (int r = blockIdx.x; r < rows; r += gridDim.x) s[threadIdx.x] = blockDim.x;"
    body = "{ extern __shared__ float s[]; " + loop + " }"
    assert ("rows", "64", "256") in launches(body)
    assert launches(body.replace("s[]", "s[7]")) == launches(body)
    assert launches(body.replace("float s", "Unknown s")) == []


@pytest.mark.parametrize(
    "body",
    [
        "{ int r = blockIdx.x * blockDim.x + threadIdx.x; if (r < rows) y[r] = 128; }",
        "{ for (int r = threadIdx.x; r < rows; r += 128) y[r] = 0; }",
    ],
)
def test_a_source_that_fits_any_launch_is_given_no_other(body: str) -> None:
    assert launches(body) == []


def test_lines_at_the_top_say_the_launch_and_are_checked() -> None:
    found = stated_plan("// grid: rows\n// block: 32\n// shared: 4 * cols\n" + HEAD + "{}", CONTRACT, "c.cu")
    assert found is not None
    (launch,) = found.launches
    assert (launch.grid[0], launch.block[0], launch.shared_bytes) == ("rows", "32", "4 * cols")
    assert stated_plan("// why: another order\n" + HEAD + "{}", CONTRACT, "c.cu") is None
    for line, words in (("block: 4096", "4096 threads"), ("args: x y rows z", "'z'"), ("grid: rowz", "rowz")):
        with pytest.raises(Exception, match=words) as told:
            stated_plan(f"// {line}\n" + HEAD + "{}", CONTRACT, "c.cu")
        assert "c.cu" in str(told.value)


def test_a_size_passed_by_name_has_the_type_of_its_parameter() -> None:
    contract = replace(CONTRACT, args=tuple(a for a in CONTRACT.args if a.name != "cols"))
    for type_, dtype in (("int", "int32"), ("size_t", "uint64")):
        head = HEAD.replace("int cols", f"{type_} cols")
        found = stated_plan("// args: x y rows cols\n" + head + "{}", contract, "c.cu")
        assert found is not None
        assert found.launches[0].args == ("x", "y", "rows", ScalarArgument(dtype, "cols"))


def test_a_size_where_the_kernel_has_no_number_is_told() -> None:
    contract = replace(CONTRACT, args=tuple(a for a in CONTRACT.args if a.name != "cols"))
    with pytest.raises(UsageError) as told:
        stated_plan("// args: x cols rows y\n" + HEAD + "{}", contract, "c.cu")
    assert "passes 'cols', which is a size, not an argument" in told.value.what
    assert "names of arguments and scratch (null, rows, x, y)" in told.value.expected
    assert told.value.fix == "write int32=cols in its place"
    with pytest.raises(UsageError) as told:
        stated_plan("// args: x y rows z\n" + HEAD + "{}", contract, "c.cu")
    assert "passes 'z', which is no argument of the contract, nor scratch" in told.value.what
