"""stage-slices: slices of global memory that are a thread's own are worked on in shared memory, whatever way they are
reached; where a place may lie elsewhere, or others write it, they stay."""

from __future__ import annotations

import pytest

from fsr.guard.check import guard
from fsr.source.parse import parse_kernels
from fsr.transform.slices.action import StageSlices

ACTION = StageSlices()
SIZES = (1, 2, 31, 64, 65, 129, 300)
ROWS = """
// /// fsr
// entry = "{entry}"
// [sizes]
// n = {{min = 1, max = 100000, timed = 65536}}
{sizes}
// [args]
{args}
// n = {{value = "n"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
"""
GUARD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n"


def kernel(
    body: str, *, x: str = "const float *x", y: str = "float *y", shapes: tuple[str, str] = ('"n", 9', '"n"'),
    roles: tuple[str, str] = ("in", "out"), more: str = "", sizes: str = "", d: str = "", **launch: str,
) -> str:  # fmt: skip
    """A kernel of two buffers. ``more``: what stands before it; ``d``: the value of a further argument."""
    args = "\n".join(
        f'// {name} = {{role = "{role}", shape = [{shape}]{dtype}}}'
        for name, role, shape, dtype in zip("xy", roles, shapes, (_dtype(x), _dtype(y)), strict=True)
    )
    head = ROWS.format(
        entry=launch.get("entry", "k"), args=args + (f'\n// d = {{value = "{d}"}}' if d else ""), sizes=sizes,
        grid=launch.get("grid", '"ceil_div(n, 64)"'), block=launch.get("block", "64"),
    )  # fmt: skip
    head = "\n".join(line for line in head.splitlines() if line)
    extra = ", int d" if d else ""
    head = f"{head}\n{more}\n{launch.get('template', '')}"
    return f"{head}\n__global__ void k({x}, {y}, int n{extra})\n{{\n    {body}\n}}\n"


def _dtype(param: str) -> str:
    return ', dtype = "float32"' if "Body" in param else ""


BYTES = {"x": "const unsigned char *x", "y": "unsigned int *y"}
MATVEC = """const float *p = x + i * 9;
    for (int r = 0; r < 3; r++) {
        float s = 0.f;
        for (int c = 0; c < 3; c++) s += p[r * 3 + c] * __ldg(&p[c]) + __ldg(p + 1);
        y[i * 3 + r] = s;
    }"""
LBM = """float rho = 0.f;
    for (int k = 0; k < 9; ++k) rho += y[i * 9 + k];
    y[9 * i] += x[i * 9 + 1] * rho; y[i * 9 + 4] -= rho; if (rho > 2.f) y[(i * 3 + 2) * 3 + 2] = 7.f;"""
HASH = """unsigned h = 5;
    const unsigned char *p = &x[i * 64];
    int j = 0;
    while (j < 64) { h = h * 31u + p[j]; j++; }
    y[i] = h;"""
CIPHER = """unsigned char s[16];
    load(s, x + i * 16);
    mix(s);
    for (int k = 0; k < 16; k++) y[i * 16 + k] = s[k];"""
CIPHER_FUNCTIONS = """
__device__ void load(unsigned char *s, const unsigned char *from) { for (int k = 0; k < 16; k++) s[k] = from[k]; }
__device__ void mix(unsigned char *s) { for (int k = 0; k < 16; k++) s[k] ^= s[(k + 5) % 16] + k; }
"""
BODIES = "struct Body { float x, y, z; float v[3]; float m; };\n"
MOVED = """Body *b = &y[i];
    b->x += b->v[0] * x[i * 9]; y[i].y += y[i].v[1]; (y + i)->z -= x[i * 9 + 8];
    Body &c = y[i];
    c.m *= 2.f;"""
COLOURS = """unsigned char r = x[3 * i], g = x[3 * i + 1], b = x[3 * i + 2];
    y[i] = (r * 77 + g * 150 + b * 29) >> 8;"""
OFFERED = {
    "a pointer to the slice": kernel(GUARD + MATVEC, shapes=('"n", 9', '"n", 3')),
    "cells, in place": kernel(GUARD + LBM, shapes=('"n", 9', '"n", 9'), roles=("in", "inout")),
    "chunks of text": kernel(GUARD + HASH, **BYTES, shapes=('"n", 64', '"n"')),
    "blocks of a cipher": kernel(
        GUARD + CIPHER, x="const unsigned char *x", y="unsigned char *y", shapes=('"n", 16', '"n * 16"'),
        more=CIPHER_FUNCTIONS,
    ),
    "records": kernel(GUARD + MOVED, y="Body *y", shapes=('"n", 9', '"n", 7'), roles=("in", "inout"), more=BODIES),
    "records that are written": kernel(
        GUARD + "y[i].re = x[i * 9 + 2]; y[i].im = -x[i * 9 + 5] - x[i * 9];", y="Body *y",
        shapes=('"n", 9', '"n", 2'), more="typedef struct { float re, im; } Body;",
    ),
    "vectors of three": kernel(
        GUARD + "y[i].x += x[i].z * 2.f; y[i].z = x[i].x - y[i].y;", x="float3 x[]", y="float3 *y",
        shapes=('"n", 3', '"n", 3'), roles=("in", "inout"),
    ),
    "a counter that was declared before": kernel(
        GUARD + "unsigned k; float s = 0.f; for (k = 0; k < 3; k++) "
        "{ unsigned at = i * 9 + k * 3; s = s * .5f + x[at] * x[at + 2]; } y[i] = s;"
    ),
    "threads that go on by a grid": kernel(
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)\n"
        "{ float s = 0.f; const float *p = x + i * 9; for (int k = 0; k < 9; k++) s += p[k];\n"
        "if (s > 0.f) s *= 2.f; y[3 * i] = s; y[3 * i + 1] = x[i * 9]; y[3 * i + 2] = 1.f; }",
        shapes=('"n", 9', '"n", 3'), grid="2",
    ),
    "the same slices in every turn": kernel(
        "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x)\n"
        "{ float s = 0.f; for (int k = 0; k < 9; k++) s += x[threadIdx.x * 9 + k]; y[i] = s; }",
        shapes=('"n + 64", 9', '"n"'), grid="2",
    ),
    "going on, with variables of its own": kernel(
        "const int id = threadIdx.x + blockIdx.x * blockDim.x; const int step = blockDim.x * gridDim.x;\n"
        "for (size_t i = id; i < n; i += step) for (int k = 0; k < 9; k++) y[i * 9 + k] += x[i] * k;",
        shapes=('"n"', '"n", 9'), roles=("in", "inout"), grid="3",
    ),
    "colours": kernel(GUARD + COLOURS, **BYTES, shapes=('"n", 3', '"n"')),
    "vectors": kernel(
        GUARD + "float4 a = x[2 * i], b = x[2 * i + 1]; y[i] = a.x * b.y + a.w * b.z;", x="const float4 *x",
        shapes=('"n * 2", 4', '"n"'),
    ),
    "a function of the slice": kernel(
        GUARD + "y[i] = norm(&x[i * 9], 3) + norm(x + i * 9 + 6, 3);",
        more="__device__ float norm(const float *v, int w) "
        "{ float s = 0.f; for (int k = 0; k < w; ++k) s += v[k] * v[k]; return s; }",
    ),
    "a macro": kernel(
        GUARD + "float s = 0.f; for (int k = 0; k < 9; k++) s = s * 0.5f + x[AT(i, k)]; y[i] = s;",
        more="#define AT(i, k) ((i) * 9 + (k))\n",
    ),
    "a template": kernel(
        GUARD + "T s = 0; for (size_t k = 0; k < (size_t)N; k++) s += x[(size_t)i * N + k] * T(k); y[i] = s;",
        x="const T *x", y="T *y", template="template <typename T, int N>", entry="k<float, 9>",
    ),
    "unsigned ids under a guard": kernel(
        "unsigned t = threadIdx.x, b = blockIdx.x, at = b * 64u + t;\n"
        "if (at < (unsigned)n) { float s = 0.f; for (unsigned k = 9; k-- > 0;) s += 1.f;"
        " for (unsigned k = 0u; k < 9u; k += 2u) s -= x[k + at * 9u]; y[at] = s; }"
    ),
    "rows of threads": kernel(
        "int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
        "if (i < n) { float s = 0.f; for (int k = 8; k >= 0; k--) s = s * .5f + *(x + 9 * i + k); y[i] = s; }",
        block="[16, 4]",
    ),
    "a pointer that is moved": kernel(GUARD + "x += i * 9; y += i; *y = x[0] + x[8] * x[4];"),
    "neighbours beyond the slice": kernel(
        GUARD + "float s = 0.f; for (int k = 0; k < 10; k++) s += x[i * 8 + k]; y[i] = s;",
        shapes=('"n * 8 + 2"', '"n"'),
    ),
    "returns in the midst": kernel(
        GUARD + "float a = x[i * 9 + 3]; if (a < 0.f) { y[i * 2] = a; y[i * 2 + 1] = 0.f; return; }\n"
        "for (int k = 0; k < 2; k++) y[i * 2 + k] = a * k + x[i * 9 + 8];", shapes=('"n", 9', '"n", 2'),
    ),
    "a return in a loop": kernel(
        GUARD + "y[i] = 1.f; for (int k = 0; k < 9; k++) if (x[i * 9 + k] < 0.f) { y[i] = k; return; }"
    ),
    "a barrier of its own": kernel(
        "__shared__ float best[64]; int i = blockIdx.x * 64 + threadIdx.x; float s = 0.f;\n"
        "if (i < n) for (int k = 0; k < 9; k++) s += x[i * 9 + k];\n"
        "best[threadIdx.x] = s; __syncthreads(); if (i < n) y[i] = best[63 - threadIdx.x];"
    ),
    "blocks in two dimensions": kernel(
        "int i = blockIdx.y * gridDim.x * 64 + blockIdx.x * 64 + threadIdx.x;\n"
        "if (i < n) for (int k = 0; k < 9; k++) y[i * 9 + k] = 2.f * x[i * 9 + k];", shapes=('"n", 9', '"n", 9'),
        grid='["2", "ceil_div(n, 128)"]',
    ),
    "a length that is an argument": kernel(
        GUARD + "float s = 0.f; for (int k = 0; k < d; k++) s += x[i * d + k]; y[i] = s;", shapes=('"n", "d"', '"n"'),
        sizes="// d = {min = 1, max = 64, timed = 16}", d="d",
    ),
    "a length that may be long": kernel(
        GUARD + "float m = x[i * d]; for (int k = 1; k < d; k++) m = fmaxf(m, x[i * d + k]);\n"
        "for (int k = 0; k < d; k++) y[i * d + k] = x[i * d + k] - m;", shapes=('"n", "d"', '"n", "d"'),
        sizes="// d = {min = 1, max = 3000, timed = 24}", d="d",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OFFERED)
def test_what_is_offered_computes_the_same(name: str, subject_from, runner) -> None:
    subject = subject_from(OFFERED[name])
    moves = list(ACTION.moves(subject))
    assert moves
    lengths = (1, 2, 17, 64, 100, 300) if subject.contract.sizes[-1].name == "d" else (0,)
    for move in moves:
        changed = ACTION.apply(subject, move)
        assert "_slices" in changed.source
        assert guard(changed, subject.candidate) is None
        sizes = [{"n": n, "d": d} for n in SIZES for d in lengths if d <= subject.contract.sizes[-1].maximum]
        runner.check(subject, changed, *sizes)
        assert runner.faults(changed, subject.contract, {"n": 70, "d": 3}) == []


RECURSIVE = """__device__ float fold(const float *p, int k)
{
    return k == 1 ? p[0] : fold(p, k / 2) + fold(p + k / 2, k - k / 2);
}
"""


def test_functions_that_call_themselves_are_left_alone(subject_from) -> None:
    assert not list(StageSlices().moves(subject_from(kernel(GUARD + "y[i] = fold(x + i * 9, 9);", more=RECURSIVE))))


SUM = GUARD + "float s = 0.f; for (int k = 0; k < 9; k++) s += x[i * 9 + k]; y[i] = s;"
SCALED = GUARD + "for (int k = 0; k < 9; k++) y[i * 9 + k] = k * 2.f;"
WIDE = ('"n"', '"n", 9')
READS_REFUSED = {
    "another thread's slice": ("x[i * 9 + k]", "x[(i + 1) % n * 9 + k]"),
    "a slice for two": ("x[i * 9 + k]", "x[i / 2 * 9 + k]"),
    "planes": ("x[i * 9 + k]", "x[k * n + i]"),
    "a place that data tells": ("x[i * 9 + k]", "x[i * 9 + (int)x[i * 9]]"),
    "a turn too many": ("k < 9", "k < 2000"),
    "as many turns as an argument says": ("k < 9", "k < n"),
    "one element of nine": ("x[i * 9 + k]", "x[i * 9 + 4]"),
    "before the slice": ("x[i * 9 + k]", "x[i * 9 + k - 1]"),
    "packs by a cast": ("x[i * 9 + k]", "((const float4 *)(x + i * 9))[k % 2].x"),
    "a pointer that goes on": ("float s = 0.f;", "float s = 0.f; const float *p = x + i * 9; s += *p++;"),
    "a pointer that a loop moves": ("s += x[i * 9 + k];", "s += *p, p += 1;"),
    "written elsewhere": ("y[i] = s;", "y[i] = s; const_cast<float *>(x)[i] = 0.f;"),
    "verbatim text": ("y[i] = s;", 'y[i] = s; asm volatile("" :: "l"(x));'),
}


@pytest.mark.parametrize("name", READS_REFUSED)
def test_what_may_lie_elsewhere_stays(name: str, subject_from) -> None:
    old, new = READS_REFUSED[name]
    assert old in SUM
    body = SUM.replace(old, new)
    if "p += 1" in new:
        body = body.replace("float s", "const float *p = x + i * 9; float s")
    assert list(ACTION.moves(subject_from(kernel(SUM))))
    assert list(ACTION.moves(subject_from(kernel(body)))) == []


TURNS = (
    "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) { float s = 0.f; "
    + SUM[SUM.index("for") :]
    + " }"
)
TURNS_REFUSED = {
    "a turn that ends early": ("y[i] = s;", "if (s < 0.f) continue; y[i] = s;"),
    "a turn that may end early in a switch": ("y[i] = s;", "switch (n) { case 5: continue; } y[i] = s;"),
    "a sum over turns": ("for (int i", "float t = 0.f; for (int i"),
    "more behind it": ("y[i] = s; }", "y[i] = s; } if (threadIdx.x == 0) y[0] = 1.f;"),
    "other steps": ("i += 64 * gridDim.x", "i += 32 * gridDim.x"),
    "its block's number": ("y[i] = s;", "y[i] = s + blockIdx.x;"),
}


@pytest.mark.parametrize("name", TURNS_REFUSED)
def test_turns_that_are_more_than_points_stay(name: str, subject_from) -> None:
    old, new = TURNS_REFUSED[name]
    assert old in TURNS
    text = TURNS.replace(old, new).replace(
        "float s = 0.f;", "float s = 0.f; t += 1.f;" if "float t" in new else "float s = 0.f;"
    )
    assert list(ACTION.moves(subject_from(kernel(TURNS, grid="3"))))
    assert list(ACTION.moves(subject_from(kernel(text, grid="3")))) == []


LEAVING = "#define LEAVE_IF(test) if (test) return;"
WRITES_REFUSED = {
    "a part of the slice": ("k < 9", "k < 8"),
    "under a condition on data": ("y[i * 9 + k] =", "if (x[i] > 0.f) y[i * 9 + k] ="),
    "until it ends early": ("y[i * 9 + k] = k * 2.f;", "{ if (x[i] > k) break; y[i * 9 + k] = k; }"),
    "beyond the slice": ("for", "y[i * 9 + 9] = 0.f; for"),
    "fewer than there are": ("if (i >= n)", "if (i >= n - 3)"),
    "a barrier of its own": ("for", "__syncthreads(); for"),
    "a return in a loop": ("k * 2.f;", "k * 2.f; if (n == 7) for (;;) return;"),
    "a return in a switch": ("for", "switch (n) { case 5: return; default: break; } for"),
    "a return behind a macro": ("for", "LEAVE_IF(n == 5) for"),
    "by another thread too": ("for", "y[(n - 1 - i) * 9] = 0.f; for"),
    "atomics on a member": ("for", "atomicAdd(&reinterpret_cast<int2 &>(y[i * 9]).x, 1); for"),
    "atomics": ("y[i * 9 + k] =", "atomicAdd(&y[i * 9 + k], 1.f); y[i * 9 + k] ="),
}


@pytest.mark.parametrize("name", WRITES_REFUSED)
def test_what_may_not_be_written_back_whole_stays(name: str, subject_from) -> None:
    old, new = WRITES_REFUSED[name]
    assert old in SCALED
    assert list(ACTION.moves(subject_from(kernel(SCALED, shapes=WIDE))))
    assert list(ACTION.moves(subject_from(kernel(SCALED.replace(old, new), shapes=WIDE, more=LEAVING)))) == []


def test_what_other_blocks_write_stays(subject_from) -> None:
    text = SCALED.replace("k * 2.f", "y[i * 9 + k] + blockIdx.y")
    one, two = (
        kernel(text, shapes=WIDE, roles=("in", "inout"), grid=f'["ceil_div(n, 64)", "{n}"]') for n in ("1", "2")
    )
    assert list(ACTION.moves(subject_from(one)))
    assert list(ACTION.moves(subject_from(two))) == []


def test_atomics_on_members_keep_their_buffer(subject_from) -> None:
    text = SUM.replace("y[i] =", "y[i].x =")
    assert text != SUM
    added = text.replace("y[i].x = s", "atomicAdd(&y[i].x, s)")
    assert added != text
    subject = subject_from(kernel(added, y="float3 *y", shapes=('"n", 9', '"n", 3'), roles=("in", "inout")))
    made = [ACTION.apply(subject, m).source for m in ACTION.moves(subject)]
    assert made
    assert not any("y_slice" in one for one in made)


def test_buffers_that_may_overlap_stay(subject_from) -> None:
    plain = kernel(SUM)
    assert list(ACTION.moves(subject_from(plain)))
    overlapping = plain.replace('// entry = "k"', '// entry = "k"\n// aliasing = [["x", "y"]]')
    assert list(ACTION.moves(subject_from(overlapping))) == []


def test_slices_that_do_not_fit_stay(subject_from) -> None:
    text = SUM.replace("9", "200")
    assert not list(ACTION.moves(subject_from(kernel(text, shapes=('"n", 200', '"n"')))))
    fewer = subject_from(kernel(SUM.replace("9", "90"), shapes=('"n", 90', '"n"')))
    assert {m.param("threads") for m in ACTION.moves(fewer)} == {64, 128}


def test_only_reads_are_offered_beside_all(subject_from) -> None:
    subject = subject_from(OFFERED["a pointer to the slice"])
    assert {m.param("what") for m in ACTION.moves(subject)} == {"all", "reads"}
    reads = next(m for m in ACTION.moves(subject) if m.param("what") == "reads")
    changed = ACTION.apply(subject, reads).source
    assert "x_slices" in changed
    assert "y_slices" not in changed


def test_the_launch_stays_where_it_must(subject_from) -> None:
    subject = subject_from(kernel(SUM), keep_launch=True)
    moves = list(ACTION.moves(subject))
    assert [m.param("threads") for m in moves] == [64]
    assert ACTION.apply(subject, moves[0]).plan.launches == subject.candidate.plan.launches


def test_short_slices_promise_less_than_long_ones(subject_from) -> None:
    def gain(name: str) -> float:
        return max(m.gain for m in ACTION.moves(subject_from(OFFERED[name])))

    assert gain("colours") < 1.1 < gain("records") < gain("chunks of text")


def test_copies_are_complete_whatever_addresses_are(subject_from, close_outputs) -> None:
    subject = subject_from(OFFERED["a pointer to the slice"])
    for move in ACTION.moves(subject):
        close_outputs(subject, ACTION.apply(subject, move), [{"n": n} for n in (3, 65)], alignment=4)


def test_candidates_are_read_again(subject_from) -> None:
    subject = subject_from(OFFERED["records"])
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert parse_kernels(changed.source).keys() == {"k"}
