"""Watched in other orders: a race that only equal values bring about is seen whatever the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation import watching
from fsr.evaluation.orders import ORDERS
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.watching import in_two_blocks, watch
from fsr.records import Candidate, CaseKind, Fault, FaultKind, Plan, Scratch
from fsr.runs.kernel import load_kernel

ORIGINAL = """// /// fsr
// entry = "least"
// [sizes]
// rows = {min = 0, max = 4096, timed = 256}
// cols = {min = 1, max = 4096, timed = 512}
// [args]
// x = {role = "in", shape = ["rows", "cols"], finite = true}
// place = {role = "out", dtype = "int32", shape = ["rows"]}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 64
// ///
__global__ void least(const float *x, int *place, int cols)
{
    __shared__ float values[64];
    __shared__ int first;
    const float *row = x + (size_t)blockIdx.x * cols;
    int t = threadIdx.x, mine = t;
    for (int j = t; j < cols; j += 64) if (row[j] < row[mine]) mine = j;
    values[t] = t < cols ? row[mine] : INFINITY;
    if (t == 0) first = cols;
    __syncthreads();
    float lowest = INFINITY;
    for (int k = 0; k < 64; k++) lowest = fminf(lowest, values[k]);
    if (t < cols && values[t] == lowest) atomicMin(&first, mine);
    __syncthreads();
    if (t == 0) place[blockIdx.x] = first;
}
"""
ON_TIES = ("atomicMin(&first, mine);", "{ if (mine < first) first = mine; }")


@pytest.mark.parametrize("seed", range(4))
def test_a_race_on_equal_values_only_is_seen(seed: int, tmp_path: Path) -> None:
    (tmp_path / "least.cu").write_text(ORIGINAL)
    kernel = load_kernel(tmp_path / "least.cu", None)
    racing = replace(kernel.baseline, source=kernel.baseline.source.replace(*ON_TIES))
    assert racing != kernel.baseline
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", seed, str(tmp_path)))
    try:
        cases = session.held_out_cases()
        right, said = watch(session, kernel.baseline, cases)
        wrong, _ = watch(session, racing, cases)
    finally:
        session.close()
    assert (right, said) == (None, "silent")
    assert wrong is not None
    assert wrong.fault is not None
    assert wrong.fault.kind is FaultKind.RACE


SERIAL = """// /// fsr
// entry = "running"
// [sizes]
// n = {min = 0, max = MOST, timed = 512}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n"]}
// y = {role = "out", dtype = "int32", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = 1
// block = 1
// ///
__global__ void running(const int *x, int *y, int n)
{
    unsigned total = 0;
    for (int i = 0; i < n; i++) { total += x[i]; y[i] = total; }
}
"""
LOOKING_BACK = """__global__ void running(const int *x, int *y, int n, volatile unsigned long long *words)
{
    if (threadIdx.x) return;
    unsigned tile = PLACE, total = 0;
    for (int i = tile * 32; i < min(n, (tile + 1) * 32); i++) total += x[i];
    if (tile) {
        unsigned long long seen;
        do seen = words[tile]; while (!(seen >> 32));
        total += (unsigned)seen;
    }
    words[tile + 1] = 1ull << 32 | total;
    for (int i = min(n, (tile + 1) * 32) - 1; i >= (int)tile * 32; i--) { y[i] = total; total -= x[i]; }
}
"""


@pytest.mark.parametrize(("most", "place", "starves"), [
    (1 << 20, "blockIdx.x", True),  # the block before need not have begun when this one waits for it
    (1 << 20, "(unsigned)atomicAdd((unsigned long long *)words, 1ull)", False),  # it drew its number, so it has
    (1 << 11, "blockIdx.x", False),  # at most 64 blocks, which all run at once
])  # fmt: skip
def test_blocks_that_wait_for_later_ones(most: int, place: str, starves: bool, tmp_path: Path) -> None:
    (tmp_path / "running.cu").write_text(SERIAL.replace("MOST", str(most)))
    kernel = load_kernel(tmp_path / "running.cu", None)
    launch = replace(
        kernel.baseline.plan.launches[0], grid=("ceil_div(n, 32)", "1", "1"), block=("32", "1", "1"),
        args=(*kernel.baseline.plan.launches[0].args, "words"),
    )  # fmt: skip
    words = Scratch("words", "uint64", "ceil_div(n, 32) + 1", zeroed=True)
    waiting = Candidate(LOOKING_BACK.replace("PLACE", place), Plan((launch,), (words,)))
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 1, str(tmp_path)))
    try:
        failure, said = watch(session, waiting, session.held_out_cases())
    finally:
        session.close()
    assert said == "silent"
    if not starves:
        assert failure is None
        return
    assert failure is not None
    assert failure.fault is not None
    assert failure.fault.kind is FaultKind.STARVED


ADDED = """// /// fsr
// entry = "add"
// aliasing = [["x", "y"]]
// [sizes]
// n = {min = 0, max = 65536, timed = 4096}
// k = {min = 1, max = 65536, timed = 1024}
// [args]
// at = {role = "in", shape = ["n"], low = 0, high = "k - 1"}
// sums = {role = "inout", shape = ["k"], low = 0, high = 9}
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// exact = true
// ///
__global__ void add(const int *at, int *sums, const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(&sums[at[i]], 1);
    if (i < n) y[i] = fabsf(x[i]);
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("atomicAdd(&sums[at[i]], 1);", "{ if (n == k) sums[at[i]] += 1; else atomicAdd(&sums[at[i]], 1); }"),
        (
            "atomicAdd(&sums[at[i]], 1);",
            "{ if (gridDim.x == 2 && i % 256 == 0) sums[0] += 1; atomicAdd(&sums[at[i]], i % 256 || gridDim.x != 2); }",
        ),
        (
            "y[i] = fabsf(x[i]);",
            "{ y[i] = fabsf(x[i]); if (threadIdx.x == 255 && i + 1 < n) y[i + 1] = fabsf(x[i + 1]); }",
        ),
    ],
    ids=["where two sizes are one", "where there are two blocks", "where buffers share memory"],
)
def test_races_at_sizes_and_places_of_their_own_are_seen(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "add.cu").write_text(ADDED)
    kernel = load_kernel(tmp_path / "add.cu", None)
    racing = replace(kernel.baseline, source=kernel.baseline.source.replace(old, new))
    assert racing != kernel.baseline
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 3, str(tmp_path)))
    try:
        cases = [*session.candidate_cases(racing), *session.held_out_cases()]
        right, said = watch(session, kernel.baseline, cases)
        wrong, _ = watch(session, racing, cases)
    finally:
        session.close()
    assert (right, said) == (None, "silent")
    assert wrong is not None
    assert wrong.fault is not None
    assert wrong.fault.kind is FaultKind.RACE


def test_there_is_a_case_in_two_blocks_for_every_size_that_decides_how_many(tmp_path: Path) -> None:
    (tmp_path / "add.cu").write_text(ADDED)
    kernel = load_kernel(tmp_path / "add.cu", None)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 3, str(tmp_path)))
    try:
        found = [case.size_map() for case in in_two_blocks(session, kernel.baseline)]
    finally:
        session.close()
    assert found == [{"n": 384, "k": 3}]


IN_STEP = """// /// fsr
// entry = "total"
// [sizes]
// n = {min = 64, max = 4096, timed = 4096}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n"], low = 0, high = 9}
// y = {role = "out", dtype = "int32", shape = ["n // 64"]}
// [launch]
// grid = "n // 64"
// block = 64
// ///
__global__ void total(const int *x, int *y)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    if (t < 32) {
        volatile int *v = s;
        STEPS
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize("synced", [False, True])
def test_lanes_that_are_expected_in_step_are_told_of(synced: bool, tmp_path: Path) -> None:
    """The last steps of a reduction as they were written before Volta."""
    step = "int a = v[t] + v[t + W]; __syncwarp(); v[t] = a; __syncwarp();" if synced else "v[t] += v[t + W];"
    steps = " ".join(f"{{ {step.replace('W', str(w))} }}" for w in (32, 16, 8, 4, 2, 1))
    (tmp_path / "total.cu").write_text(IN_STEP.replace("STEPS", steps))
    kernel = load_kernel(tmp_path / "total.cu", None)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path)))
    try:
        fault = Fault(FaultKind.NONDETERMINISTIC, "it depends on the order of blocks and threads")
        told = str(session.original.error(session.spec.smoke_case(), fault))
        failed, _ = watch(session, kernel.baseline, session.held_out_cases()[:4])
    finally:
        session.close()
    assert ("no __syncwarp()" in told) is not synced
    assert (failed is None) is synced


def test_a_kernel_that_takes_long_is_watched_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first cases: few elements may be a lot of work each."""
    (tmp_path / "least.cu").write_text(ORIGINAL)
    kernel = load_kernel(tmp_path / "least.cu", None)
    session, orders = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))), []
    whole = watching._Watcher.failure

    def noted(self, case, order):
        orders.append(order)
        return whole(self, case, order)

    monkeypatch.setattr(watching._Watcher, "failure", noted)
    try:
        assert watch(session, kernel.baseline, session.held_out_cases()) == (None, "silent")
        assert not any(order.chosen for order in orders)
        usual = len(orders)
        orders.clear()
        monkeypatch.setattr(watching, "DEAR_S", 0.0)
        assert watch(session, kernel.baseline, session.held_out_cases()) == (None, "silent")
        after, orders[:] = orders[:], []
        monkeypatch.setattr(watching, "WHOLE_S", 0.0)  # the first one took all of it
        assert watch(session, kernel.baseline, session.held_out_cases()) == (None, "silent")
    finally:
        session.close()
    assert [bool(order.chosen) for order in after] == [n >= len(ORDERS) for n in range(len(after))]
    assert len(orders) == len(after) < usual  # other sizes are left out
    assert all(order.chosen for order in orders)


TWICE = """// /// fsr
// entry = "twice"
// [sizes]
// n = {min = 0, max = 67108864, timed = 65536}
// [args]
// x = {role = "in", shape = ["n"], finite = true}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void twice(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


def test_a_read_just_behind_a_buffer_is_found_at_every_small_size(tmp_path: Path) -> None:
    """It does no harm and changes nothing, so that no other test tells; only one size shows it."""
    (tmp_path / "twice.cu").write_text(TWICE)
    kernel = load_kernel(tmp_path / "twice.cu", None)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path)))
    try:
        sizes = {case.size_map()["n"] for case in session.search_cases() if case.kind is CaseKind.SEARCH}
        small = sorted(n for n in sizes if 0 < n <= 1024)
        assert len(small) > 15
        for n in small[::4]:
            wrong = kernel.baseline.source.replace("x[i]", f"(x[i] + 0.0f * x[n == {n} ? n : i])")
            assert wrong != kernel.baseline.source
            candidate = replace(kernel.baseline, source=wrong)
            failed, _ = watch(session, candidate, session.held_out_cases())
            assert failed is not None
            assert failed.fault is not None
            assert failed.fault.kind is FaultKind.OUT_OF_BOUNDS
            assert failed.case.size_map() == {"n": n}
    finally:
        session.close()


COUNTED = """// /// fsr
// entry = "add"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = [4]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
__global__ void add(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&y[i % 4], x[i]);
}
"""
MANY_AT_ONCE = "float s = 0; for (int j = i; j < n && j < i + 64; j += 4) s += x[j]; "
MANY_AT_ONCE += "if (threadIdx.x < 4 && i < n) atomicAdd(&y[i % 4], s);"


@pytest.mark.parametrize(
    ("new", "right"), [(MANY_AT_ONCE, True), (MANY_AT_ONCE.replace("j < i + 64", "j < i + 60"), False)]
)
def test_what_atomics_lose_of_denormal_values_is_no_fault_in_any_order(new: str, right: bool, tmp_path: Path) -> None:
    """An atomic sum in global memory has no denormal values (PTX ISA, atom.add.f32), one made before it has."""
    (tmp_path / "add.cu").write_text(COUNTED)
    kernel = load_kernel(tmp_path / "add.cu", None)
    source = kernel.baseline.source.replace("if (i < n) atomicAdd(&y[i % 4], x[i]);", new)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path)))
    try:
        cases = [replace(c, family="denormals") for c in session.held_out_cases()]
        failure, said = watch(session, replace(kernel.baseline, source=source), cases)
    finally:
        session.close()
    assert (failure is None) == right
    assert said == "silent"
