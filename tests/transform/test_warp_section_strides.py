"""warp-section where all threads of a block go through rows in strides: lanes do each turn, to the same end."""

from __future__ import annotations

import random
import re

import pytest

from fsr.transform.sections.warp_action import LANES, WarpSection

SIZES = [{"blocks": b, "rows": r, "n": n} for b, r, n in [(1, 1, 8), (2, 37, 19), (3, 200, 33), (2, 300, 64)]]


def kernel(body: str, *, block: str = "128", head: str = "", exact: bool = False) -> str:
    """A kernel with arrays in shared memory: ``s`` of n elements, ``e`` and ``f`` of as many as there are rows."""
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// blocks = {{min = 1, max = 64, timed = 8}}
// rows = {{min = 1, max = 400, timed = 64}}
// n = {{min = 8, max = 256, timed = 128}}
// [args]
// w = {{role = "in", shape = ["rows", "n"]}}
// x = {{role = "in", shape = ["blocks", "n"]}}
// out = {{role = "inout", shape = ["blocks", "rows"]}}
// rows = {{value = "rows"}}
// n = {{value = "n"}}
// [launch]
// grid = "blocks"
// block = {block}
// shared_bytes = "4 * (n + 2 * rows)"
// [tolerance]
// {"exact = true" if exact else 'sum_length = "1024"'}
// ///
{head}
__global__ void k(const float *__restrict__ w, const float *__restrict__ x, float *__restrict__ out, int rows, int n)
{{
    extern __shared__ float s[];
    float *e = s + n, *f = e + rows;
    const int tid = threadIdx.x, nt = blockDim.x, b = blockIdx.x;
    for (int i = tid; i < n; i += nt) s[i] = x[b * n + i];
    for (int j = tid; j < rows; j += nt) {{ e[j] = out[b * rows + j]; f[j] = 0.1f; }}
    __syncthreads();
{body}
    __syncthreads();
    for (int j = tid; j < rows; j += nt) out[b * rows + j] += e[j] + f[j];
}}
"""


ROWS = """
    for (int j = tid; j < rows; j += nt) {
        float a = 0.5f;
        const float *own = w + (size_t)j * n;
        for (int i = 0; i < n; i++) a += own[i] * s[i];
        e[j] = e[j] - a;
    }
"""
BLOCKS = ("128", "96", "32", "44", '"max(40, min(rows, 256))"', '"32 * ceil_div(min(rows, 256), 32)"')


def _agrees(subject, moves, close_outputs, runner) -> None:
    for move in moves:
        changed = WarpSection().apply(subject, move)
        assert changed.plan == subject.candidate.plan
        close_outputs(subject, changed, SIZES)
        assert runner.faults(changed, subject.contract, SIZES[2]) == [], move.name


@pytest.mark.parametrize("block", BLOCKS)
def test_lanes_do_each_turn(block: str, subject_from, close_outputs, runner) -> None:
    subject = subject_from(kernel(ROWS, block=block))
    moves = list(WarpSection().moves(subject))
    assert {m.param("lanes") for m in moves} == set(LANES)
    assert {m.param("strides") for m in moves} == {"rows"}
    _agrees(subject, moves, close_outputs, runner)


def test_strides_are_those_of_groups_where_blocks_are_whole_groups(subject_from, apply_move) -> None:
    whole = apply_move(WarpSection(), subject_from(kernel(ROWS)), "lanes=32]").source
    assert re.search(r"j\d \+= 4\)", whole)
    assert "if (threadIdx.x <" not in whole
    by_thread = apply_move(WarpSection(), subject_from(kernel(ROWS.replace("0.5f", "tid"))), "lanes=32]").source
    assert "+= 4)" in by_thread
    assert "< blockDim.x" in by_thread
    parts = apply_move(WarpSection(), subject_from(kernel(ROWS, block="44")), "lanes=8]").source
    assert "if (threadIdx.x < 5 * 8)" in parts


def test_all_meet_only_where_others_may_touch_the_same(subject_from, apply_move) -> None:
    plain = kernel(ROWS)
    assert apply_move(WarpSection(), subject_from(plain), "lanes=8]").source.count("__syncthreads") == 2
    own = ROWS + "    for (int j = tid; j < rows; j += nt) f[j] = e[j];\n"
    assert apply_move(WarpSection(), subject_from(kernel(own)), "lanes=8]").source.count("__syncthreads") == 3


TURNS = (
    "e[j] = {0} - a;",
    "e[j] = e[j] * {0} + a;",
    "f[j] = a; e[j] += j >= nt ? f[j - nt] : {0};",  # of the thread's own turn before
    "if (a > {0}) {{ e[j] += a; continue; }} f[j] = a;",
    "e[j] = a + tid * {0};",
    "e[j] = a; if (a > 2.0f) break;",
    "out[b * rows + j] = a * {0};",
    "atomicAdd(&out[b * rows + j], a);",
    "e[j] = a; for (int i = 0; i < n; ++i) e[j] += w[j * n + i] * {0};",
)
FOLDS = (
    "float a = {0}; for (int i = 0; i < n; ++i) a += w[j * n + i] * s[i];",
    "float a = {0}; const float *own = &w[j * n]; for (int i = n - 1; i >= 0; --i) a = fmaxf(a, own[i] - s[i]);",
    "float a; a = 0.0f; for (int i = 0; i < n; i++) {{ if (s[i] > {0}) a += w[(rows - 1 - j) * n + i]; }}",
    "float a = 1e9f; int p = -1; for (int i = 0; i < n; ++i) {{ float d = fabsf(w[j * n + i] - s[i]);"
    " if (d < a) {{ a = d; p = i; }} }} a += p * 0.01f;",
    "float a = f[j]; if (j % 3) for (int i = 0; i < n; ++i) a += w[j * n + i] * e[j];",
)
BETWEEN = ("", "__syncthreads();", "for (int j = START; j < rows; j += nt) f[j] = e[j] * 0.5f;",
           "__syncthreads();\n    if (tid == 0) s[0] = 0.25f;\n    __syncthreads();")  # fmt: skip


ONCE = """
    __shared__ float h[128];
    if (tid < rows && tid < 100) {
        float a = 0.25f;
        for (int i = 0; i < n; i++) a += w[tid * n + i] * s[i];
        h[tid] = tanhf(a);
        if (tid == 3) h[127] = a;
    }
    __syncthreads();
    const int j = threadIdx.x;
    if (j < 60 && rows > 9) {
        float a = 0.5f;
        const float *own = w + (j % rows) * n;
        for (int i = 0; i < n; i++) a = fmaxf(a, own[i] * h[min(i, rows - 1) % 100]);
        f[j % rows] = rows > 60 ? a : 0.0f;
    }
"""


SOME = ROWS.replace("for (int j", "if (tid < 70 && n > 8) for (int j")


@pytest.mark.parametrize("block", BLOCKS[:2])
def test_lanes_do_what_each_of_many_threads_does(block: str, subject_from, close_outputs, runner) -> None:
    subject = subject_from(kernel(SOME, block=block))
    _agrees(subject, list(WarpSection().moves(subject))[:2], close_outputs, runner)
    subject = subject_from(kernel(ONCE, block=block))
    moves = [m for m in WarpSection().moves(subject) if m.param("strides") == "rows"]
    assert {m.param("lanes") for m in moves} == set(LANES)
    assert "which" in WarpSection().apply(subject, moves[0]).source
    _agrees(subject, moves, close_outputs, runner)


def _composed(chance: random.Random) -> str:
    parts = []
    start = chance.choice(["tid", "tid", "threadIdx.x", "1 + tid"])  # one, as others would race
    for _ in range(chance.randint(1, 3)):
        number = f"{chance.randint(1, 9) / 8}f"
        inner = f"{chance.choice(FOLDS).format(number)} {chance.choice(TURNS).format(number)}"
        parts.append(f"    for (int j = {start}; j < rows; j += {chance.choice(['nt', 'blockDim.x'])}) {{ {inner} }}")
        parts.append("    " + chance.choice(BETWEEN).replace("START", start))
    body = "\n".join(parts)
    return (
        f"    for (int t = 0; t < 2; t++) {{\n{body}\n    __syncthreads();\n    }}" if chance.random() < 0.5 else body
    )


@pytest.mark.parametrize("seed", range(12))
def test_composed_strides(seed: int, subject_from, close_outputs, runner) -> None:
    chance = random.Random(seed)
    subject = subject_from(kernel(_composed(chance), block=chance.choice(BLOCKS)))
    moves = [m for m in WarpSection().moves(subject) if m.params]
    assert moves
    _agrees(subject, chance.sample(moves, min(2, len(moves))), close_outputs, runner)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for (int j = tid", "    if (s[tid % n] > 3.0f) return;\n    for (int j = tid"),
        ("    for (int j = tid", "    if (s[tid % n] > 0.5f)\n    for (int j = tid"),
        ("j += nt", "j += nt / 2"),
        ("int j = tid", "int j = 2 * tid"),
        ("e[j] = e[j] - a;", "e[j] = a; if (a > 90.0f) return;"),
        ("e[j] = e[j] - a;", "e[j] = a; __syncwarp();"),
        ("e[j] = e[j] - a;", "e[j] = a + __shfl_sync(__activemask(), a, 0);"),
        ("a += own[i] * s[i];", "a = a * a + own[i] * s[i];"),
        ("i < n", "i < 3"),
        ("    for (int j = tid", "    float last = 0.0f;\n    for (int j = tid"),
        ("    for (int j = tid", "    float mine = s[tid % n]; __syncthreads(); if (tid < n) s[tid] = 0.5f;"
         " __syncthreads();\n    for (int j = tid"),
        ("    for (int j = tid", "    float mine[4]; mine[tid % 4] = tid;\n    for (int j = tid"),
        ("e[j] = e[j] - a;", "((volatile float *)e)[j] = a;"),
    ],
)  # fmt: skip
def test_no_move_where_threads_or_order_would_tell(old: str, new: str, subject_from) -> None:
    assert old in ROWS
    body = ROWS.replace(old, new)
    if "last" in new:
        body = body.replace("e[j] = e[j] - a;", "e[j] = a + last; last = a;")
    elif "mine" in new:
        body = body.replace("e[j] = e[j] - a;", f"e[j] = a + mine{'[tid % 4]' if '[4]' in new else ''};")
    assert [m for m in WarpSection().moves(subject_from(kernel(body))) if m.params] == []


def test_no_move_where_bits_must_stay_or_blocks_have_no_group(subject_from) -> None:
    assert list(WarpSection().moves(subject_from(kernel(ROWS, exact=True)))) == []
    for block in ("2", '"rows"', "[16, 8]"):
        assert list(WarpSection().moves(subject_from(kernel(ROWS, block=block)))) == []
    some = {m.param("lanes") for m in WarpSection().moves(subject_from(kernel(ROWS, block='"min(8 + n, 64)"')))}
    assert some == {4, 8, 16}
