"""A candidate's plan in the comments of its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.model import Argument, Contract, Size
from fsr.errors import ContractError, UsageError
from fsr.expressions import evaluate
from fsr.records import Launch, Plan, Role, ScalarArgument, Scratch
from fsr.testgen.candidate_file import candidate_of, plan_notes, read_candidate, read_notes, stated_plan

BASE = Launch("k", ("ceil_div(n, 32)", "1", "1"), ("32", "1", "1"), "0", ("x", "n"))
CONTRACT = Contract("k", (Size("n", 0, 9, (5,)),), (Argument("x", "float32", Role.INOUT, ("n",)),), Plan((BASE,)))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "c.cu"
    path.write_text(
        "\n".join(f"// {line}" for line in lines) + "\n\n// grid: 99\n__global__ void k(float *x, int n) {}\n"
    )
    return path


def test_what_is_not_said_is_the_contract_s(tmp_path: Path) -> None:
    candidate = read_candidate(written(tmp_path, "cheat: 1", "how: it does: nothing"), CONTRACT)
    assert candidate.plan == Plan((BASE,))
    assert candidate.source.startswith("// cheat: 1")
    assert read_notes(tmp_path / "c.cu") == {"cheat": ["1"], "how": ["it does: nothing"]}


def test_a_changed_launch_with_scratch_and_flags(tmp_path: Path) -> None:
    path = written(
        tmp_path, "entry: k<4>", "grid: ceil_div(n, 8) | 2", "block: 8 4", "shared: 4 * n", "args: x part n",
        "scratch: part float32 2 * n", "scratch: count int32 1 zeroed", "flags: --use_fast_math",
    )  # fmt: skip
    assert read_candidate(path, CONTRACT).plan == Plan(
        (Launch("k<4>", ("ceil_div(n, 8)", "2", "1"), ("8", "4", "1"), "4 * n", ("x", "part", "n")),),
        (Scratch("part", "float32", "2 * n"), Scratch("count", "int32", "1", True)),
        ("--use_fast_math",),
    )


def test_a_grid_may_name_sizes_that_others_tell(tmp_path: Path) -> None:
    contract = replace(CONTRACT, named=(("side", "(2 * n + 1)"),))
    path = written(tmp_path, "grid: ceil_div(side, 8) side 1", "block: 8", "shared: 4 * side")
    (launch,) = read_candidate(path, contract).plan.launches
    assert launch.grid == ("ceil_div((2 * n + 1), 8)", "(2 * n + 1)", "1")
    assert launch.shared_bytes == "4 * (2 * n + 1)"
    path = written(tmp_path, "launch: k | side | 8 | 4*side | x int32=side n | side", "scratch: part int32 side")
    plan = read_candidate(path, contract).plan
    told = Launch(
        "k",
        ("(2 * n + 1)", "1", "1"),
        ("8", "1", "1"),
        "4*(2 * n + 1)",
        ("x", ScalarArgument("int32", "(2 * n + 1)"), "n"),
        "(2 * n + 1)",
    )
    assert (plan.launches, plan.scratch) == ((told,), (Scratch("part", "int32", "(2 * n + 1)"),))


def test_a_plan_of_two_launches(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "launch: a | min(ceil_div(n, 8), 64) 2 | 8 | 0 | x part n",
        "launch: b | 1 | 64 | 256 | part x int32=min(ceil_div(n, 8), 64)",
        "scratch: part float32 64",
    )
    first, second = read_candidate(path, CONTRACT).plan.launches
    assert first == Launch("a", ("min(ceil_div(n, 8), 64)", "2", "1"), ("8", "1", "1"), "0", ("x", "part", "n"))
    assert second.args == ("part", "x", ScalarArgument("int32", "min(ceil_div(n, 8), 64)"))
    assert second.shared_bytes == "256"


def test_a_repeated_launch(tmp_path: Path) -> None:
    (launch,) = read_candidate(written(tmp_path, "repeat: n", "args: x int32=2*step n"), CONTRACT).plan.launches
    assert (launch.repeat, launch.args) == ("n", ("x", ScalarArgument("int32", "2*step"), "n"))
    path = written(tmp_path, "launch: k | 1 | 32 | 0 | x int32=step | 2 * n", "launch: k | 1 | 32 | 0 | x n")
    plan = read_candidate(path, CONTRACT).plan
    assert [one.repeat for one in plan.launches] == ["2 * n", "1"]
    again = candidate_of(plan_notes(plan) + "__global__ void k() {}", CONTRACT, "x").plan
    assert [evaluate(one.repeat, {"n": 4}) for one in again.launches] == [8, 1]


@pytest.mark.parametrize("grid", ["min(n, 4) 2", "min(n, 4) | 2", "min(n, 4), 2", "[min(n, 4), 2]", "[min(n, 4),2]"])
def test_parts_of_a_grid_are_told_apart_as_people_write_them(tmp_path: Path, grid: str) -> None:
    (launch,) = read_candidate(written(tmp_path, f"grid: {grid}"), CONTRACT).plan.launches
    assert launch.grid == ("min(n, 4)", "2", "1")


@pytest.mark.parametrize(
    "line", ["scratch: part", "launch: k | 1 | 1", "block: 1 2 3 4", "launch: k | 1 | 1 | 0 | x | 2 | 3"]
)
def test_a_malformed_line_is_a_usage_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_candidate(written(tmp_path, line), CONTRACT)


def test_the_lines_of_a_plan_give_the_plan() -> None:
    launch = Launch("k<4>", ("min(ceil_div(n, 4), 65535)", "1", "n + 1"), ("32", "4", "1"), "4 * n", ("x", "s"))
    other = Launch("k2", ("1", "1", "1"), ("1", "1", "1"), "0", ("s", ScalarArgument("int32", "n * 2")))
    plan = Plan((launch, other), (Scratch("s", "float32", "n", True),), ("--use_fast_math",))
    read = candidate_of(plan_notes(plan) + "__global__ void k() {}", CONTRACT, "x").plan
    assert read.scratch == plan.scratch
    assert read.flags == plan.flags
    sizes = {"n": 9}
    for a, b in zip(read.launches, plan.launches, strict=True):
        assert [evaluate(g, sizes) for g in (*a.grid, *a.block, a.shared_bytes)] == [
            evaluate(g, sizes) for g in (*b.grid, *b.block, b.shared_bytes)
        ]
        assert a.entry == b.entry
    assert read.launches[0].args == launch.args
    assert read.launches[1].args[0] == "s"


def test_a_launch_that_the_largest_sizes_do_not_allow_is_the_candidates_to_correct() -> None:
    large = replace(CONTRACT, sizes=(Size("n", 0, 70000, (5,)),))
    with pytest.raises(ContractError, match="at the largest sizes") as refused:
        stated_plan("// grid: 1 | 1 | n\n// args: x\n__global__ void k(float *x) {}\n", large, "mine.cu")
    assert "lines at its top" in refused.value.fix
    assert refused.value.where == "mine.cu"
