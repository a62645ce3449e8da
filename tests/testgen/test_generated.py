"""Inputs that a function of the user's makes together: what it gets, what it may make, and what tests see of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge, judge_own
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.records import Case, CaseKind
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen import generated, users_function
from fsr.testgen.cases import held_out_cases, search_cases
from fsr.testgen.generated import made_inputs
from fsr.testgen.large import far_cases
from fsr.testgen.scalars import scalars_of
from fsr.testgen.shaking import nudged, perturbed
from fsr.testgen.unstated import unstated
from fsr.testgen.values import build

ROWS = """// /// fsr
// entry = "rows"
// inputs = "make.py:rows"
// [sizes]
// n = {min = 0, max = 512, timed = 256}
// total = {min = 0, max = 4096, timed = 2048}
// [args]
// start = {role = "in", shape = ["n"], low = 0, high = "total"}
// length = {role = "in", shape = ["n"], low = 0}
// x = {shape = ["total"], low = -2, high = 2}
// y = {role = "out", shape = ["n"]}
// gain = {low = 0, high = 3}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "total"
// ///
__global__ void rows(int *start, int *length, const float *x, float *y, float gain, int n)
{
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int at = start[row]; at < start[row] + length[row]; at++) sum += x[at];
    y[row] = gain * sum;
}
"""
MAKE = """import numpy as np


def rows(n, total, rng):
    ends = np.sort(rng.integers(0, total + 1, n + 1))
    return {"start": ends[:-1], "length": np.diff(ends)}
"""
CASE = Case("c", (("n", 20), ("total", 100)), "normal", 7)


def contract_of(folder: Path, make: str = MAKE, text: str = ROWS) -> Contract:
    (folder / "make.py").write_text(make)
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def body(text: str) -> str:
    return text[text.index("__global__") :]


def test_what_it_makes_is_what_tests_have(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    one, two, again = (build(contract, replace(CASE, seed=seed)) for seed in (7, 8, 7))
    assert one.made == {"start", "length"}
    assert one.arrays["start"].dtype == np.int32
    assert ((one.arrays["start"] + one.arrays["length"]) <= 100).all()
    assert (one.arrays["start"][1:] == (one.arrays["start"] + one.arrays["length"])[:-1]).all()
    assert all((one.arrays[n] == again.arrays[n]).all() for n in one.made)
    assert (one.arrays["start"] != two.arrays["start"]).any()
    other = build(contract, replace(CASE, family="zeros"))  # cases of one seed that were given other families
    assert (one.arrays["start"] != other.arrays["start"]).any()


def test_what_it_does_not_make_is_drawn_as_ever(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    plain = replace(contract, inputs=None)
    assert (build(contract, CASE).arrays["x"] == build(plain, CASE).arrays["x"]).all()
    assert build(contract, CASE).scalars == build(plain, CASE).scalars


@pytest.mark.parametrize("sizes", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_sizes_of_nothing_and_one(tmp_path: Path, sizes: tuple[int, int]) -> None:
    data = build(contract_of(tmp_path), replace(CASE, sizes=(("n", sizes[0]), ("total", sizes[1]))))
    assert data.arrays["length"].shape == (sizes[0],)


def test_it_is_given_sizes_and_scalars_by_name(tmp_path: Path) -> None:
    make = (
        "import numpy as np\ndef rows(total, n, gain, **others):\n"
        "    assert sorted(others) == ['rng'] and isinstance(gain, float)\n"
        "    return {'length': np.zeros(n, np.int64)}\n"
    )
    assert not build(contract_of(tmp_path, make), CASE).arrays["length"].any()


def test_it_is_given_sizes_that_others_tell(tmp_path: Path) -> None:
    text = ROWS.replace("// [args]", '// twice = "2 * n + total"\n// [args]')
    make = (
        "import numpy as np\ndef rows(total, n, twice):\n    assert twice == 2 * n + total\n"
        "    return {'length': np.zeros(n, np.int64)}\n"
    )
    assert not build(contract_of(tmp_path, make, text), CASE).arrays["length"].any()


def test_cases_that_decide_have_arrays_of_their_own(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    seen, last = (
        {build(contract, replace(c, sizes=CASE.sizes)).arrays["start"].tobytes() for c in cases}
        for cases in (search_cases(contract, contract.plan, 0), held_out_cases(contract, 0))
    )
    assert len(seen) > 30
    assert len(last) > 10
    assert not seen & last


@pytest.mark.parametrize(
    ("returned", "words", "expected"),
    [
        ("None", "returned NoneType", "a dictionary"),
        ("1 / 0", "raised ZeroDivisionError", "a dictionary"),
        ("{'star': np.zeros(n)}", "made 'star', which is no argument", "start, length, x"),
        ("{'y': np.zeros(n)}", "made 'y', of which the contract says that nobody reads", "start, length, x"),
        ("{'gain': 1.0}", "made 'gain', which is no array", "start, length, x"),
        ("{'start': np.zeros(n + 1, int)}", "made start of shape (21,) at n = 20", "(20,), which is ['n']"),
        ("{'start': np.full(n, 0.5)}", "made start of float64, with elements that int32", "numbers of int32"),
        ("{'start': np.full(n, 2**40)}", "made start of int64, with elements that int32", "numbers of int32"),
        ("{'start': np.full(n, 'a')}", "made start of <U1, with elements", "numbers of int32"),
        ("{'start': np.full(n, 101)}", "element [0] is 101", "high = total, which is 100"),
        ("{'length': np.full(n, -1)}", "element [0] is -1", "low = 0"),
        ("{'x': np.full(total, np.nan)}", "element [0] is nan", "finite = false"),
        ("{'x': np.full(total, 1e300)}", "made x of float64, with elements that float32", "numbers of float32"),
        ("{'x': np.full(total, 3.0)}", "element [0] is 3.0", "high = 2"),
        ("{'x': np.random.random(total)}", "made two different arrays x for the same rng", "all chance from rng"),
    ],
)
def test_what_it_may_not_make(tmp_path: Path, returned: str, words: str, expected: str) -> None:
    contract = contract_of(tmp_path, f"import numpy as np\n\ndef rows(n, total, rng):\n    return {returned}\n")
    with pytest.raises(ContractError) as told:
        build(contract, CASE)
    assert words in told.value.what
    assert expected in told.value.expected
    assert told.value.where.endswith("make.py:4" if "raised" in words else "make.py:3")
    assert told.value.fix


@pytest.mark.parametrize(
    ("limits", "made", "words"),
    [
        ("offsets = 100", "np.arange(n) + 1", "element [0] is 1, and not 0"),
        ("offsets = 100", "np.arange(n)", "element [19] is 19, and not 100"),
        (
            "offsets = 100",
            "np.where(np.arange(n) == 3, 0, 100 * (np.arange(n) > 0))",
            "[3] is less than the one before",
        ),
        ("sorted = true", "-np.arange(n)", "element [1] is less than the one before it"),
        ("unique = true", "np.zeros(n, int)", "it has 0 20 times"),
        ("values = [1, 5]", "np.full(n, 3)", "element [0] is 3"),
        ("positive = true", "np.zeros(n, int)", "element [0] is 0"),
    ],
)
def test_all_that_is_stated_holds(tmp_path: Path, limits: str, made: str, words: str) -> None:
    text = ROWS.replace('low = 0, high = "total"', limits)
    contract = contract_of(tmp_path, f"import numpy as np\ndef rows(n):\n    return {{'start': {made}}}\n", text)
    with pytest.raises(ContractError) as told:
        build(contract, CASE)
    assert words in told.value.what


def test_limits_of_each_element_along_the_last_extent(tmp_path: Path) -> None:
    text = ROWS.replace('shape = ["n"], low = 0, high = "total"', 'shape = ["n", 2], low = [0, 5], high = [4, "total"]')
    make = "import numpy as np\ndef rows(n):\n    return {'start': np.tile([4, %d], (n, 1))}\n"
    assert (build(contract_of(tmp_path, make % 7, text), CASE).arrays["start"] == [4, 7]).all()
    (tmp_path / "b").mkdir()
    with pytest.raises(ContractError, match=r"element \[0, 1\] is 4"):
        build(contract_of(tmp_path / "b", make % 4, text), CASE)


def test_the_same_names_at_all_sizes(tmp_path: Path) -> None:
    make = MAKE.replace("    return", "    if n == 0: return {}\n    return")
    contract = contract_of(tmp_path, make)
    build(contract, CASE)
    with pytest.raises(ContractError, match="made nothing at n = 0, total = 1, and before that length, start"):
        build(contract, replace(CASE, sizes=(("n", 0), ("total", 1))))


def test_one_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_function, "FIRST_S", 0.2)
    with pytest.raises(ContractError, match=r"function of inputs 'make.py:rows' did not answer within 0.2 s"):
        build(contract_of(tmp_path, "def rows(n):\n    while True: pass\n"), CASE)


@pytest.mark.parametrize(("name", "words"), [("make.py:other", "no function 'other'"), ("made.py:rows", "made.py"),
                                             ("rows", "module.py:function")])  # fmt: skip
def test_one_that_is_not_there(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ContractError) as told:
        contract_of(tmp_path, text=ROWS.replace("make.py:rows", name))
    assert words in f"{told.value.what} {told.value.expected}"
    assert told.value.where.endswith("kernel.cu:3")


def test_it_is_read_back_and_counts_where_results_are_kept(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    path = tmp_path / "kernel.cu"
    before = load_kernel(path)
    path.write_text(with_block(ROWS, contract))
    assert 'inputs = "make.py:rows"' in path.read_text()
    assert load_kernel(path).contract.inputs == contract.inputs
    assert "make.py" in dict(before.includes())
    assert before.modules == tmp_path
    path.write_text(ROWS.replace('// inputs = "make.py:rows"\n', ""))
    assert load_kernel(path).contract_digest() != before.contract_digest()


def test_floats_with_both_limits_vary_in_some_tests_and_no_timed_one(tmp_path: Path) -> None:
    make = "import numpy as np\ndef rows(total):\n    return {'x': np.full(total, 0.5)}\n"
    contract = contract_of(tmp_path, make)
    drawn = {k: sum(not build(contract, replace(CASE, seed=s, kind=k)).made for s in range(60)) for k in CaseKind}
    assert 8 < drawn[CaseKind.SEARCH] < 35
    assert 8 < drawn[CaseKind.HELD_OUT] < 35
    assert drawn[CaseKind.TIMED] == drawn[CaseKind.HELD_OUT_TIMED] == 0
    unlimited = contract_of(tmp_path, make, ROWS.replace("low = -2, high = 2", "low = -2"))
    assert all(build(unlimited, replace(CASE, seed=s)).made for s in range(60))


def test_what_belongs_together_is_moved_together(tmp_path: Path) -> None:
    """Equal elements alike, within the least and the largest, and what ascends goes on ascending."""
    text = ROWS.replace('["total"], low = -2, high = 2', '["n", "n"]')
    make = (
        "import numpy as np\ndef rows(n, rng):\n    a = rng.normal(size=(n, n)).astype(np.float32)\n"
        "    a = a + a.T\n    np.fill_diagonal(a, 0)\n    return {'x': a}\n"
    )
    contract = contract_of(tmp_path, make, text)
    data = build(contract, CASE)
    for moved in [
        *perturbed(contract, CASE, data),
        *perturbed(contract, CASE, data, 4),
        nudged(contract, CASE, data, 1),
    ]:
        x = moved.arrays["x"]
        assert (x == x.T).all()
        assert (np.diag(x) == 0).all()
        assert data.arrays["x"].min() <= x.min() <= x.max() <= data.arrays["x"].max()
    first = next(perturbed(contract, CASE, data)).arrays["x"]
    assert (first != data.arrays["x"]).mean() > 0.9
    ascending = make.replace("a = a + a.T\n    np.fill_diagonal(a, 0)", "a = np.sort(a, axis=None).reshape(n, n)")
    (tmp_path / "b").mkdir()
    other = contract_of(tmp_path / "b", ascending, text)
    for moved in perturbed(other, CASE, build(other, CASE)):
        assert (np.diff(moved.arrays["x"].reshape(-1)) >= 0).all()


def test_nothing_is_made_that_takes_minutes(tmp_path: Path) -> None:
    large = ROWS.replace("max = 4096", "max = 2000000000")
    assert not far_cases(contract_of(tmp_path, text=large), 0)
    (tmp_path / "b").mkdir()
    assert far_cases(contract_of(tmp_path / "b", text=large.replace('// inputs = "make.py:rows"\n', "")), 0)


def test_a_remark_on_limits_is_not_made_of_what_the_user_makes(tmp_path: Path) -> None:
    make = "import numpy as np\ndef rows(total):\n    return {'x': np.full(total, 1e30)}\n"
    contract = contract_of(tmp_path, make, ROWS.replace("low = -2, high = 2", "finite = true"))
    assert unstated(contract, build(contract, CASE)) is None


def test_notes_say_what_only_the_function_makes(tmp_path: Path) -> None:
    make = MAKE.replace('"length"', '"x": np.linspace(0, 1, total), "length"').replace("rng.integers(0", "np.minimum(0")
    make = make.replace("np.minimum(0, total + 1, n + 1)", "np.zeros(n + 1, int)")
    contract = contract_of(tmp_path, make)
    scalars = scalars_of(contract, CASE)
    told = generated.notes(contract, (CASE, replace(CASE, seed=8)), scalars)
    assert told == [
        "start, length: tests have what make.py:rows makes, and nothing else",
        "x: made by make.py:rows, and in half of the tests drawn between their limits",
        "make.py:rows makes the same whatever its seed: tests differ by sizes alone there",
    ]
    assert made_inputs(replace(contract, inputs=None), CASE, scalars) == {}


RIGHT = body(ROWS).replace(
    "for (int at", "if (row > 0 && start[row] != start[row - 1] + length[row - 1]) return;\n    for (int at"
)
WRONG = body(ROWS).replace("at < start[row] + length[row]", "at < start[row] + length[row] && at < start[row] + 29")


@pytest.mark.parametrize(("candidate", "status"), [(RIGHT, "passed"), (WRONG, "failed")])
def test_candidates_are_held_to_what_the_function_makes(tmp_path: Path, candidate: str, status: str) -> None:
    """One may rest on what all such arrays promise one another; one that is wrong for some of them is found."""
    contract_of(tmp_path)
    (tmp_path / "candidate.cu").write_text(candidate)
    options = RefineOptions(tmp_path / "kernel.cu", "host")
    assert judge(tmp_path / "candidate.cu", options, timed=False).status == status


def test_a_kernel_that_only_such_inputs_keep_within_its_buffers(tmp_path: Path) -> None:
    contract_of(tmp_path)
    found = judge_own(RefineOptions(tmp_path / "kernel.cu", "host"))
    assert found.status == "passed"
    assert any("start, length: tests have what make.py:rows makes" in note for note in found.notes)
    assert found.sizes == {"n": [0, 512], "total": [0, 4096]}


QUADS = """// /// fsr
// entry = "centre"
// inputs = "make.py:quads"
// [sizes]
// n = {min = 1, max = 512, timed = 256}
// [args]
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [args.quads]
// role = "in"
// shape = ["n"]
// x = {low = 0, high = 9}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct Quad { float x[4]; int kind; };
__global__ void centre(const Quad *quads, float *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = (quads[i].x[0] + quads[i].x[1] + quads[i].x[2] + quads[i].x[3]) / 4;
}
"""
CORNERS = "def quads(n, rng):\n    import numpy as np\n    return {'quads.x': MADE}\n"


def test_an_array_within_structures_is_made_whole(tmp_path: Path) -> None:
    made = "np.add.outer(np.zeros(n), np.arange(4))"
    contract = contract_of(tmp_path, CORNERS.replace("MADE", made), QUADS)
    arrays = made_inputs(contract, Case("c", (("n", 20),), "normal", 7), {})
    held = {name: set(array.tolist()) for name, array in arrays.items()}
    assert held == {f"quads.x[{k}]": {float(k)} for k in range(4)}


@pytest.mark.parametrize(
    ("made", "words"), [("np.zeros((n, 3))", "made quads.x of shape (20, 3)"), ("1.0", "made quads.x of shape ()")]
)
def test_one_of_other_elements_is_told(tmp_path: Path, made: str, words: str) -> None:
    contract = contract_of(tmp_path, CORNERS.replace("MADE", made), QUADS)
    with pytest.raises(ContractError) as fault:
        build(contract, Case("c", (("n", 20),), "normal", 7))
    assert words in str(fault.value)
    assert "4 along the last extent" in str(fault.value)
