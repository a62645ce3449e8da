"""Kernels of before Volta, whose lanes were expected in step: which are written anew, and how."""

from __future__ import annotations

import pytest

from fsr.records import Launch
from fsr.transform.in_step import in_step

KERNEL = """HEAD
__global__ void total(const int *x, int *y, int n)
{
    __shared__ int s[512];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    s[t] = x[i];
    __syncthreads();
    BODY
    if (t == 0) y[blockIdx.x] = s[0];
}
"""
STEPS = "volatile int *v = s; v[t] += v[t + 32]; v[t] += v[t + 16]; v[t] += v[t + 1];"
SPLIT = "{ const auto fsr_value = v[t] + v[t + 16]; __syncwarp(); v[t] = fsr_value; __syncwarp(); }"


def written(body: str, head: str = "", block: tuple[str, str, str] = ("128", "1", "1")) -> str | None:
    launch = Launch("total", ("4", "1", "1"), block, "0", ("x", "y", "n"))
    found = in_step(KERNEL.replace("HEAD", head).replace("BODY", body), (launch,))
    return None if found is None else found.text


@pytest.mark.parametrize(
    "body",
    [
        f"if (t < 32) {{ {STEPS} }}",
        f"if (i / 32 * 32 == i - (t & 31)) {{ {STEPS} }}".replace("i / 32 * 32 == i - (t & 31)", "(t >> 5) == 0"),
        f"if (i % 128 < 32) {{ {STEPS} }}",
        f"if (n > 3) {{ if (t < warpSize) {{ {STEPS} }} }}",
        f"if (t >= 32) return; {STEPS}",
        f"if (i >= n) return; if (t < 32) {{ {STEPS} }}",
    ],
)
def test_statements_that_whole_warps_come_to_are_split(body: str) -> None:
    text = written(body)
    assert text is not None
    assert SPLIT in text
    assert text.count("__syncwarp();") == 6


@pytest.mark.parametrize(
    ("statement", "split"),
    [
        (
            "if (t % 32 >= 1) s[t] = s[t - 1] + s[t];",
            "{ const bool fsr_active = t % 32 >= 1; { int fsr_value{}; if (fsr_active) fsr_value = s[t - 1] + s[t]; "
            "__syncwarp(); if (fsr_active) s[t] = fsr_value; __syncwarp(); } }",
        ),
        (
            "int m = 0; s[t] = m = m + s[t + 1];",
            "{ m = m + s[t + 1]; __syncwarp(); s[t] = m; __syncwarp(); }",
        ),
        (
            "volatile int *mine = &s[t]; *mine += mine[4];",
            "{ const auto fsr_value = *mine + mine[4]; __syncwarp(); *mine = fsr_value; __syncwarp(); }",
        ),
        (
            "for (int w = 16; w > 0; w >>= 1) if (t < w) s[t] += s[t + w];",
            "{ const bool fsr_active = t < w; { int fsr_value{}; if (fsr_active) fsr_value = s[t] + s[t + w]; "
            "__syncwarp(); if (fsr_active) s[t] = fsr_value; __syncwarp(); } }",
        ),
        (
            "s[t] += 1; if (t == 9) s[t] = s[8];",
            "{ const auto fsr_value = s[t] + 1; __syncwarp(); s[t] = fsr_value; __syncwarp(); }",
        ),
    ],
)
def test_forms(statement: str, split: str) -> None:
    """A condition of some lanes becomes one of the reading and of the writing, with the barriers outside it."""
    text = written(statement)
    assert text is not None
    assert split in text


def test_a_loop_that_lanes_leave_at_different_times_has_barriers_around_it() -> None:
    loop = "for (int j = x[t]; j < n; j += 32)\n        s[t] += x[j];"
    text = written(f"s[t] = 0; {loop} s[t] += s[t + 1];")
    assert text is not None
    assert f"{{ __syncwarp(); {loop} __syncwarp(); }}" in text
    rows = f"for (int r = t / 32; r < n; r += 4) {{ s[t] = 0; {loop} if (t % 32 < 16) s[t] += s[t + 16]; }}"
    inside = written(rows)
    assert inside is not None
    assert f"{{ __syncwarp(); {loop} __syncwarp(); }}" in inside
    assert inside.count("\n") == KERNEL.count("\n") + 1


def test_a_row_of_a_shared_array_under_a_name_of_its_own() -> None:
    text = written("__shared__ volatile int m[4][48]; volatile int *own = m[t / 32]; own[t % 32] += own[t % 32 + 16];")
    assert text is not None
    assert "{ const auto fsr_value = own[t % 32] + own[t % 32 + 16]; __syncwarp(); own[t % 32] = fsr_value;" in text


def test_functions_are_written_anew_where_they_stand() -> None:
    head = "template <int N>\n__device__ void last(volatile int *v, int t)\n{\n    if (N >= 64) v[t] += v[t + 1];\n}\n"
    text = written("if (t < 32) last<64>(s, t);", head)
    assert text is not None
    assert (
        "if (N >= 64) { const auto fsr_value = v[t] + v[t + 1]; __syncwarp(); v[t] = fsr_value; __syncwarp(); }" in text
    )
    assert text.count("\n") == KERNEL.count("\n") + head.count("\n")


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("if (t < 16) { s[t] += s[t + 1]; } else { s[t] = s[t - 16]; }", ""),  # which side is first?
        ("while (s[t] > 0) s[t] -= s[t ^ 1];", ""),
        ("for (int j = x[t]; j < n; j++) s[t] += s[t ^ 1];", ""),  # which turn of another lane's is it?
        ("for (int j = x[t]; j < n; j++) { s[t] += j; if (j > 9) return; } s[t] += s[t + 1];", ""),
        ("if (t % 2) for (int j = x[t]; j < n; j++) s[t] += j; s[t] += s[t + 1];", ""),  # others do not come to it
        ("for (int j = x[t]; j < n; j++) for (int k = 0; k < j; k++) s[t] += s[t + k];", ""),
        ("s[x[t] & 7] = s[t];", ""),  # two lanes, one element
        ("if (s[t] > 0) return; s[t] += s[t + 1];", ""),  # who is left depends on data
        ("if (t < 16) last(s, t);", "__device__ void last(int *v, int t) { v[t] += v[t + 1]; }"),
        ("last(s, t);", "__device__ void last(int *v, int t) { if (t > 3) return; v[t] += v[t + 1]; }"),
        ("LAST;", "__device__ void last(int *v, int t) { v[t] += v[t + 1]; }\n#define LAST last(s, t); last(s, t)"),
        ("here: s[t] += s[t + 1];", ""),
        ("atomicAdd(&s[t / 2], s[t + 1]);", ""),
        ("s[t] += s[t + 1]; __syncwarp();", ""),  # whoever knows of it has put it where it belongs
        ("s[t] += s[t + 32];", ""),  # of another warp
    ],
)
def test_what_nobody_can_show_stays(body: str, head: str) -> None:
    assert written(body, head) is None


@pytest.mark.parametrize("block", [("16", "1", "1"), ("48", "1", "1"), ("n", "1", "1"), ("2048", "1", "1")])
def test_blocks_of_no_whole_warps_stay(block: tuple[str, str, str]) -> None:
    assert written(STEPS, block=block) is None


def test_rows_of_a_block_in_two_dimensions() -> None:
    assert written("s[threadIdx.y * 32 + t] += s[threadIdx.y * 32 + t + 1];", block=("32", "4", "1")) is not None
    assert written("if (threadIdx.y > 1) s[threadIdx.y * 16 + t] += s[t];", block=("16", "8", "1")) is None


def test_steps_that_a_barrier_of_the_block_parts_stay() -> None:
    steps = "for (int w = blockDim.x / 2; w > 0; w >>= 1) { if (t < w) s[t] += s[t + w]; __syncthreads(); }"
    assert written(steps) is None


def test_branches_of_the_preprocessor_are_read_as_a_compiler_does() -> None:
    text = written("\n#if WARPS >= 4\n    s[t] += s[t + 1];\n#else\n    s[t] += s[t + 2];\n#endif\n", "#define WARPS 4")
    assert text is not None
    assert "const auto fsr_value = s[t] + s[t + 1];" in text
    assert "    s[t] += s[t + 2];\n#endif" in text


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("int u = 0; own(u); if (u < 16) s[t] += s[t + 1];", "__device__ void own(int &u) { u = threadIdx.x; }"),
        ("int u = 0; { int u = t; if (u < 16) s[t] += s[t + 1]; }", ""),
        ("int u = t; { int u = 0; } if (u < 16) s[t] += s[t + 1];", ""),
        ("__shared__ int u; u = 3; if (u < 16) s[t] += s[t + 1];", ""),
        ("int u = 0; if (t & 1) u = 40; if (u < 16) s[t] += s[t + 1];", ""),
        ("unsigned char u = t; if (u < 16) s[t] += s[t + 1];", ""),
        ("int u = 0; while (x[u + t] > 0) u++; if (u < 16) s[t] += s[t + 1];", ""),
        ("if (t - 1 < 32) s[t] += s[t + 1];", ""),
        ("if (PART) s[t] += s[t + 1];", "#define PART (threadIdx.x < 16)"),
        ("if (part()) s[t] += s[t + 1];", "__device__ bool part() { return threadIdx.x < 16; }"),
        ("if (x[0] < 16) s[t] += s[t + 1];", ""),
    ],
)
def test_barriers_stand_in_no_branch_that_lanes_may_take_alone(body: str, head: str) -> None:
    text = written(body, head)
    if text is not None:
        assert "const bool fsr_active" in text
        assert "if (fsr_active) s[t] = fsr_value; __syncwarp();" in text


def test_a_function_that_two_launches_come_to_otherwise_stays() -> None:
    head = "__device__ void last(volatile int *v, int t) { v[t] += v[t + 1]; }\n"
    head += "__global__ void few(int *y)\n{\n    __shared__ int s[128];\n"
    head += "    if (threadIdx.x < 9) last(s, threadIdx.x);\n}\n"
    source = KERNEL.replace("HEAD", head).replace("BODY", "last(s, t);")
    first = Launch("total", ("4", "1", "1"), ("128", "1", "1"), "0", ("x", "y", "n"))
    assert in_step(source, (first,)) is not None
    assert in_step(source, (first, Launch("few", ("1", "1", "1"), ("64", "1", "1"), "0", ("y",)))) is None
