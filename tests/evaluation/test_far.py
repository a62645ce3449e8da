"""Sizes beyond memory: a few blocks on buffers of holes tell what only goes wrong there, and let right kernels be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.far import far_failure
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate, Plan

CONTRACT = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 1048576, timed = 64}
// cols = {min = 1, max = 8192, timed = 256}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// b = {role = "in", shape = ["rows"]}
// y = {role = "out", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// ///
"""
HEAD = "__global__ void k(const float *x, const float *b, float *y, int rows, int cols) {{ {} }}\n"
WIDE = "long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, n = (long long)rows * cols; "
ORIGINAL = HEAD.format(WIDE + "if (i < n) y[i] = x[i] + b[i / cols];")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = Path(tmp_path_factory.mktemp("far"), "k.cu")
    path.write_text(CONTRACT + ORIGINAL)
    contract = load_contract(path)
    opened = Session(SessionSpec(contract, Candidate(ORIGINAL, contract.plan), "host", "sm_90", seed=3))
    yield opened
    opened.close()


def judged(session: Session, body: str, grid: str = "") -> tuple[int, CaseFailure | None]:
    plan = session.contract.plan
    if grid:
        plan = Plan((replace(plan.launches[0], grid=(grid, "1", "1")),))
    candidate = Candidate(HEAD.format(body), plan)
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries), built
    return far_failure(session, candidate, built.run, 1000.0)


@pytest.mark.parametrize(
    "body",
    [
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * cols) y[i] = x[i] + b[i / cols];",
        WIDE + "if (i < n) y[i] = x[i] + b[(long long)((float)i / (float)cols)];",
        WIDE + "i &= 0x7fffffff; if (i < n) y[i] = x[i] + b[i / cols];",
        WIDE + "if (i < n && blockIdx.x < 3000000) y[i] = x[i] + b[i / cols];",
    ],
    ids=["index in an int", "row in a float", "index cut to 31 bits", "grid capped"],
)
def test_what_only_large_sizes_show_is_found(session: Session, body: str) -> None:
    assert judged(session, body)[1] is not None


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (WIDE + "i = (long long)(gridDim.x - 1 - blockIdx.x) * 256 + threadIdx.x;"
         "if (i < n) y[i] = x[i] + b[i / cols];", ""),
        (WIDE + "for (long long j = 4 * i; j < 4 * i + 4 && j < n; j++) y[j] = x[j] + b[j / cols];", ""),
        (WIDE + "for (long long j = 8 * i; j < 8 * i + 8 && j < n; j++) y[j] = x[j] + b[j / cols];",
         "ceil_div(rows * cols, 2048)"),
        ("for (int r = blockIdx.x; r < rows; r += gridDim.x) for (int c = threadIdx.x; c < cols; c += 256)"
         "y[(size_t)r * cols + c] = x[(size_t)r * cols + c] + b[r];", "rows"),
        (WIDE + "for (; i < n; i += 256ll * gridDim.x) y[i] = x[i] + b[i / cols];",
         "min(ceil_div(rows * cols, 256), 65536)"),
        ("long long t = blockIdx.x * 256ll + threadIdx.x, lines = (rows + 1) / 2, line = t / 1024; int c = t % 1024;"
         "if (line < lines && c < 256) for (long long r = 2 * line; r < 2 * line + 2 && r < rows; r++)"
         "for (int at = c; at < cols; at += 256) y[r * cols + at] = x[r * cols + at] + b[r];",
         "4 * ((rows + 1) // 2) + 3"),
    ],
    ids=[
        "blocks from the end", "blocks that idle", "fewer blocks", "a row a block", "blocks in steps",
        "blocks that idle in the midst of others",
    ],
)  # fmt: skip
def test_right_kernels_of_other_shapes_pass(session: Session, body: str, grid: str) -> None:
    cases, failure = judged(session, body, grid)
    assert failure is None
    assert cases >= 1


Judging = Callable[..., tuple[int, CaseFailure | None]]
STRIDED = "unsigned n = (unsigned)rows * cols; for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += 16384u) "


def test_few_blocks_that_go_over_all_are_looked_at(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsr.evaluation.far.WHOLE_S", 300.0)
    body = STRIDED + "y[i] = x[i] + b[min(rows - 1, (int)((float)i / (float)cols))];"
    assert judged(session, body, "64")[1] is not None


@pytest.fixture
def judging(tmp_path: Path) -> Iterator[Judging]:
    """What far_failure says of a candidate against an original with a contract; ``grid`` in place of its own."""
    sessions: list[Session] = []

    def judge(block: str, original: str, body: str, grid: str = "") -> tuple[int, CaseFailure | None]:
        (tmp_path / "k.cu").write_text(block + original)
        contract = load_contract(tmp_path / "k.cu")
        sessions.append(Session(SessionSpec(contract, Candidate(original, contract.plan), "host", "sm_90", seed=3)))
        launch = contract.plan.launches[0]
        plan = Plan((replace(launch, grid=(grid, "1", "1") if grid else launch.grid),))
        built = build(sessions[-1].spec, candidate := Candidate(body, plan))
        assert isinstance(built, Binaries), built
        return far_failure(sessions[-1], candidate, built.run, 300.0)

    yield judge
    for session in sessions:
        session.close()


def head(sizes: str, args: str, launch: str, more: str = "") -> str:
    text = f'entry = "k"\n[sizes]\n{sizes}\n[args]\n{args}\n[launch]\n{launch}\n{more}'
    return "// /// fsr\n" + "".join(f"// {line}\n" for line in text.splitlines()) + "// ///\n"


COUNTED = head('n = {min = 0, max = 33554432, timed = 65536}',
               'x = {role = "in", shape = ["n"], low = 0, high = 7}\n'
               'h = {role = "inout", shape = [8], low = 0, high = 9}',
               'grid = "ceil_div(n, 256)"\nblock = 256')  # fmt: skip
COUNT = """__global__ void k(const unsigned char *x, unsigned int *h, int n) {
    int i = blockIdx.x * 256 + threadIdx.x; if (i < n) atomicAdd(&h[x[i]], 1u);
}
"""
PACKED = """__global__ void k(const unsigned char *x, unsigned int *h, int n) {
    __shared__ unsigned int s[4]; if (threadIdx.x < 4) s[threadIdx.x] = 0; __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&s[x[i] >> 1], x[i] & 1 ? 65536u : 1u);
    __syncthreads();
    unsigned v = threadIdx.x < 8 ? s[threadIdx.x >> 1] : 0;
    if (threadIdx.x < 8) atomicAdd(&h[threadIdx.x], threadIdx.x & 1 ? v >> 16 : v & 65535u);
}
"""


BYTES = head('n = {min = 1, max = 1073741824, timed = 1024}',
             'x = {role = "in", shape = ["n"], high = 100}\n'
             'y = {role = "out", shape = ["n"]}',
             'grid = "ceil_div(n, 256)"\nblock = 256')  # fmt: skip
BYTES_COPIED = """__global__ void k(const unsigned char *x, unsigned char *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = x[i];
}
"""


@pytest.mark.parametrize(("limit", "off", "right"), [("atol = 1", 1, True), ("atol = 1", 2, False), ("", 1, False)])
def test_whole_numbers_may_be_off_by_what_the_contract_says(
    judging: Judging, limit: str, off: int, right: bool
) -> None:
    block = BYTES.removesuffix("// ///\n") + f"// [tolerance]\n// {limit}\n// ///\n"
    cases, failure = judging(block, BYTES_COPIED, BYTES_COPIED.replace("x[i];", f"x[i] + (i % 7 == 3) * {off};"))
    assert cases or failure is not None
    assert (failure is None) == right


def test_counters_of_few_bits_are_filled_in_whole(judging: Judging) -> None:
    few = "min(ceil_div(n, 256), 256)"
    cases, failure = judging(COUNTED, COUNT, PACKED, few)
    assert failure is not None
    assert failure.case.name == "filled 0"
    cases, failure = judging(COUNTED, COUNT, COUNT)
    assert (cases > 1, failure) == (True, None)


TURNED = head("rows = {min = 0, max = 4194304, timed = 2048}\ncols = {min = 0, max = 4096, timed = 1024}",
              'a = {role = "in", shape = ["rows", "cols"]}\no = {role = "out", shape = ["cols", "rows"]}',
              'grid = "ceil_div(rows, 256)"\nblock = 256')  # fmt: skip
TURN = """__global__ void k(const float *a, float *o, int rows, int cols) {
    int r = blockIdx.x * 256 + threadIdx.x; if (r >= rows) return;
    for (int c = 0; c < cols; c++) o[(size_t)c * rows + r] = a[(size_t)r * cols + c];
}
"""


def test_a_block_that_touches_much_is_run_alone(judging: Judging) -> None:
    assert judging(TURNED, TURN, TURN)[1] is None
    assert judging(TURNED, TURN, TURN.replace("(size_t)c * rows", "c * rows"))[1] is not None


FEW = (
    TURNED.replace("max = 4194304", "max = 494080")
    .replace("max = 4096", "max = 34")
    .replace("timed = 1024", "timed = 34")
)
BY_FLOAT = """__global__ void k(const float *a, float *o, int rows, int cols) {
    const unsigned n = (unsigned)rows * cols;
    for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += gridDim.x * 256u) {
        const unsigned c = (unsigned)((float)i / (float)rows), r = i - c * rows;
        o[i] = a[(size_t)r * cols + c];
    }
}
"""


def test_of_sizes_hardly_past_what_a_float_counts_one_is_run_in_whole(judging: Judging) -> None:
    """Blocks that go over all of the data in steps cannot be looked at alone."""
    assert BY_FLOAT.replace("(unsigned)((float)i / (float)rows)", "i / rows") != BY_FLOAT
    cases, failure = judging(FEW, TURN, BY_FLOAT, "200")
    assert failure is not None
    assert failure.case.name == "far, in whole"
    assert failure.case.size_map() == {"rows": 494080, "cols": 34}
    cases, failure = judging(FEW, TURN, BY_FLOAT.replace("(unsigned)((float)i / (float)rows)", "i / rows"), "200")
    assert (cases > 0, failure) == (True, None)


EDGE = head("w = {min = 1, max = 4096, timed = 512}\nh = {min = 1, max = 4096, timed = 512}",
            'x = {role = "in", shape = ["h", "w"]}\ny = {role = "out", shape = ["h", "w"]}',
            'grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]\nblock = [16, 16]')  # fmt: skip
COPY = """__global__ void k(const float *x, float *y, int w, int h) {
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
    if (i < w && j < h) y[j * w + i] = x[j * w + i];
}
"""


@pytest.mark.parametrize(
    "wrong",
    ["i == 4095 && j == 4095 ? 0.0f : x[j * w + i]", "x[min((int)((float)(j * w + i) + 0.5f), w * h - 1)]"],
    ids=["the last element", "float index from 2^23 on"],
)
def test_all_sizes_stand_at_their_ends_at_once(judging: Judging, wrong: str) -> None:
    assert judging(EDGE, COPY, COPY)[1] is None
    assert judging(EDGE, COPY, COPY.replace("= x[j * w + i]", f"= {wrong}"))[1] is not None


RUNS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1000000, timed = 5000}
// [args]
// x = {role = "in", shape = ["n"], low = 0, high = 9}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
BEFORE = """__global__ void k(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = i;
    if (i >= n) return;
    while (j + 1 < n && x[j + 1] == x[i]) j++;
    while (i > 0 && x[i - 1] == x[j]) i--;
    y[blockIdx.x * blockDim.x + threadIdx.x] = j - i;
}
"""


def test_long_lines_that_the_original_takes_too_long_for_are_run_in_parts(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(RUNS + BEFORE)
    contract = load_contract(tmp_path / "k.cu")
    session = Session(SessionSpec(contract, Candidate(BEFORE, contract.plan), "host", "sm_90", seed=3))
    try:
        for body, right in ((BEFORE.replace("= j - i", "= (j - i) & 0x7fff"), False),
                            (BEFORE.replace("j++", "++j"), True)):  # fmt: skip
            candidate = Candidate(body, contract.plan)
            built = build(session.spec, candidate)
            assert isinstance(built, Binaries), built
            assert (far_failure(session, candidate, built.run, 50.0)[1] is None) == right
    finally:
        session.close()


WAYS = """__global__ void k(const float *x, const int *at, float *y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[at[i]];
}
"""
MANY = "n = {min = 1, max = 300000, timed = [20000, 200000]}"
LAUNCH = 'grid = "ceil_div(n, 64)"\nblock = 64'
TAKEN = 'x = {shape = ["n"]}\nat = {shape = ["n"], low = 0, high = "n - 1"%s}\ny = {role = "out", shape = ["n"]}'


def unlooked(folder: Path, text: str, budget_s: float = 300.0) -> dict[int, str]:
    """Why no block was looked at, by the first of the timed sizes."""
    (folder / "k.cu").write_text(text)
    contract = load_contract(folder / "k.cu")
    original = text.partition("// ///\n")[2]
    session = Session(SessionSpec(contract, Candidate(original, contract.plan), "host", "sm_90", seed=3))
    try:
        built = build(session.spec, session.spec.baseline)
        assert isinstance(built, Binaries), built
        assert far_failure(session, session.spec.baseline, built.run, budget_s)[1] is None
        timed = [tuple(sizes.items()) for sizes in contract.timed_sizes()]
        looked = {sizes for sizes in timed if sizes in session.in_blocks}
        assert not looked & {*session.not_in_blocks}
        return {sizes[0][1]: session.not_in_blocks.get(sizes, "") for sizes in timed}
    finally:
        session.close()


def test_the_one_reason_why_no_block_is_looked_at_is_told(tmp_path: Path) -> None:
    found = unlooked(tmp_path, head(MANY, TAKEN % "", LAUNCH) + WAYS)
    assert "more than 65,536 elements, and the largest there, x, has 20,000" in found[20000]
    assert found[200000] == ""
    found = unlooked(tmp_path, head(MANY, TAKEN % ", unique = true", LAUNCH) + WAYS)
    assert {*found.values()} == {
        "at is made whole, not block by block, since it is unique: no place alone tells a value"
    }
    listed = TAKEN.replace('x = {shape = ["n"]}', 'x = {shape = ["n", 1], low = [0], high = [1]}') % ""
    assert "x is made whole, not block by block, since its limits are lists" in str(
        unlooked(tmp_path, head(MANY, listed, LAUNCH) + WAYS)
    )
    summed = WAYS.replace("y[i] = x[at[i]];", "atomicAdd(&y[at[i]], x[i]);")
    added = (TAKEN % "").replace('role = "out"', 'role = "inout"')
    found = unlooked(tmp_path, head(MANY, added, LAUNCH) + summed)
    assert found[200000] == "atomicAdd on y may change what other blocks write, so that no block is judged alone"


def test_a_number_is_told_where_blocks_take_too_long_or_touch_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = WAYS.replace("y[i] = x[at[i]];", "{ float s = 0; for (int j = 0; j < n; j++) s += x[j]; y[i] = s; }")
    text = head(MANY, TAKEN % "", LAUNCH) + every
    monkeypatch.setattr("fsr.evaluation.far.WHOLE_BUDGET_S", 1000.0)
    with monkeypatch.context() as patched:
        patched.setattr("fsr.backends.host.sparse.TOUCHED_BYTES", 1 << 18)
        assert "one block touches too much: over 0 MiB" in unlooked(tmp_path, text)[200000]
    with monkeypatch.context() as patched:
        patched.setattr("fsr.evaluation.far.BLOCK_S", 0.001)
        assert "blocks looked at take over 0.001 s" in unlooked(tmp_path, text)[200000]
    with monkeypatch.context() as patched:
        patched.setattr("fsr.evaluation.far.FAR_S", -1.0)
        assert "that blocks alone have were over before" in unlooked(tmp_path, text)[200000]


SHARED = """__global__ void k(const unsigned char *x, int *h, int n) {
    __shared__ int s[8]; int *bins = s; if (threadIdx.x < 8) s[threadIdx.x] = 0; __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x; if (i < n) atomicAdd(&bins[x[i]], 1);
    __syncthreads(); if (threadIdx.x < 8) h[blockIdx.x * 8 + threadIdx.x] = s[threadIdx.x];
}
"""
BY_BLOCK = COUNTED.replace(
    'role = "inout", shape = [8], low = 0, high = 9', 'role = "out", shape = ["ceil_div(n, 256)", 8]'
)


def test_blocks_with_atomics_in_their_shared_memory_alone_are_looked_at(judging: Judging) -> None:
    cases, failure = judging(BY_BLOCK, SHARED, SHARED.replace("int *bins = s; ", "").replace("bins[", "s["))
    assert (cases > 1, failure) == (True, None)
    wrong = SHARED.replace(
        "int i = blockIdx.x * 256 + threadIdx.x;", "int i = (blockIdx.x & 65535) * 256 + threadIdx.x;"
    )
    assert judging(BY_BLOCK, SHARED, wrong)[1] is not None


def test_arrays_beside_a_structure_of_constants_are_looked_at_however_large(tmp_path: Path) -> None:
    """Its size is its own: only what grows with sizes is limited."""
    text = """struct P { int n; float f; };
__constant__ P p;
__global__ void k(const float *x, float *y) { int i = blockIdx.x * 64 + threadIdx.x; if (i < p.n) y[i] = x[i] * p.f; }
"""
    args = 'x = {shape = ["n"]}\ny = {role = "out", shape = ["n"]}\n"p.n" = {value = "n"}\n"p.f" = {low = 1, high = 2}'
    assert unlooked(tmp_path, head("n = {max = 40000000, timed = 30000000}", args, LAUNCH) + text) == {30000000: ""}
