"""stage-rows: rows that threads go through step by step are written and read in tiles, however loop and row are put;
where turns, places or who comes along cannot be told, they stay."""

from __future__ import annotations

import pytest

from fsr.guard.check import guard
from fsr.transform.slices.stage_rows import StageRows

ACTION = StageRows()
SIZES = [(n, d) for n in (1, 31, 33, 64, 100, 257) for d in (1, 2, 15, 32, 33, 70)]
HEAD = """// /// fsr
// entry = "{entry}"
// [sizes]
// n = {{min = 1, max = {most}, timed = 4096}}
// d = {{min = 1, max = 2000, timed = 252}}
// [args]
// x = {{role = "{role}", shape = ["n", "d"]{x}}}
// y = {{role = "{out}", shape = ["n", "d + 1"]{y}}}
// z = {{role = "out", shape = ["n", "3 * d"]{z}}}
// n = {{value = "n"}}
// d = {{value = "d"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
"""
ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    "
GUARD = ID + "if (i >= n) return;\n    "


def kernel(body: str, *, x: str = "const float *x", y: str = "float *y", z: str = "float *z", **options: str) -> str:
    """A kernel of three buffers with rows of ``d``, ``d + 1`` and ``3 * d`` elements."""
    typed = {name: ', dtype = "float32"' if "T *" in text else "" for name, text in zip("xyz", (x, y, z), strict=True)}
    head = HEAD.format(
        entry=options.get("entry", "k"), grid=options.get("grid", '"ceil_div(n, 64)"'),
        block=options.get("block", "64"), role=options.get("role", "in"), out=options.get("out", "out"),
        most=options.get("most", "100000"), **typed,
    )  # fmt: skip
    before = f"{options.get('before', '')}\n{options.get('template', '')}"
    return f"{head}{before}\n__global__ void k({x}, {y}, {z}, int n, int d)\n{{\n    {body}\n}}\n"


PATH = "float s = i % 7; y[i * (d + 1)] = s;\n    "
STEP = "s = s * 0.5f + t % 5;"
OFFERED = {
    "paths": kernel(GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; }"),
    "from one on": kernel(GUARD + PATH + "for (int t = 1; t <= d; t++) { " + STEP + " y[i * (d + 1) + t] = s; }"),
    "a pointer to the row, a guard around": kernel(
        ID + "if (i < n) { float *row = y + (size_t)i * (d + 1); float s = 0.f; row[0] = s;"
        " for (int t = 1; t < d + 1; t += 1) { " + STEP + " row[t] = s; } row[0] = row[d]; }"
    ),
    "a pointer behind the row's head": kernel(
        GUARD + PATH + "int stride = d + 1; float *at = &y[i * stride] + 1;"
        " for (unsigned t = 0u; t < (unsigned)d; t++) { " + STEP + " *(at + t) = s; }"
    ),
    "wide ids": kernel(
        "size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float s = 0.f;"
        " for (size_t t = 0; t < (size_t)d; ++t) { " + STEP + " y[i * (d + 1) + t] = s; } y[i * (d + 1) + d] = s; }"
    ),
    "wide places": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " y[(size_t)i * (d + 1) + t + 1] = s; }",
        most="4000000",
    ),
    "a variable from before, read behind the loop": kernel(
        GUARD + PATH + "int t; for (t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; } z[i] = t;"
    ),
    "a while loop": kernel(
        GUARD + PATH + "int t = 0; while (t < d) { " + STEP + " y[i * (d + 1) + t + 1] = s; t++; }"
    ),
    "downwards": kernel(
        GUARD + "float s = 1.f; for (int t = d; t >= 0; t--) { " + STEP + " y[i * (d + 1) + t] = s; }"
    ),
    "the last first": kernel(GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + d - t] = s; }"),
    "three a step, and another": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " z[(i * d + t) * 3] = s; z[(i * d + t) * 3 + 2] = t;"
        " y[i * (d + 1) + t + 1] = -s; float u = s + 1.f; z[3 * (i * d + t) + 1] = u; }"
    ),
    "rows that are read": kernel(
        GUARD + "float s = 0.f; for (int t = 0; t < d; ++t) s = s * 0.5f + x[i * d + t]; y[i * (d + 1)] = s;"
    ),
    "read from the end": kernel(
        GUARD + "float s = 0.f; const float *row = x + i * d; for (int t = d - 1; t >= 0; --t)"
        " { float v = __ldg(&row[t]); s = s * 0.5f + (v > 0.f ? v : 1.f); } y[i * (d + 1)] = s;"
    ),
    "a filter": kernel(
        GUARD + "float s = 0.f; for (int t = 0; t < d; t++) { const float v = x[i * d + t];"
        " s = 0.25f * v + 0.5f * s; y[i * (d + 1) + t] = s; }"
    ),
    "in place": kernel(
        GUARD + "float s = 0.f; for (int t = 0; t < d + 1; t++) { s += y[i * (d + 1) + t]; y[i * (d + 1) + t] = s; }",
        out="inout",
    ),
    "added to": kernel(GUARD + "for (int t = 0; t <= d; t++) y[i * (d + 1) + t] += t * i;", out="inout"),
    "read after it was set": kernel(
        GUARD + "float s = 1.f; for (int t = 0; t <= d; t++) { y[i * (d + 1) + t] = s; s = y[i * (d + 1) + t] * 0.5f; }"
    ),
    "rows of threads": kernel(
        "int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; if (i >= n) return; " + PATH
        + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; }", block="[16, 4]",
    ),
    "blocks in two dimensions": kernel(
        "int col = blockIdx.x * 32 + threadIdx.x, line = blockIdx.y * 2 + threadIdx.y; int i = line * 32 + col;"
        " if (col >= 32 || i >= n) return; " + PATH
        + "for (int t = 0; t < d; ++t) { " + STEP + " y[(line * 32 + col) * (d + 1) + t + 1] = s; }",
        block="[32, 2]", grid='["1", "ceil_div(n, 64)"]',
    ),
    "threads that data lets in": kernel(
        GUARD + "if (x[i * d] > 0.f) { float s = 1.f; for (int t = 0; t <= d; ++t) { " + STEP
        + " y[i * (d + 1) + t] = s; } } else if (i % 3 == 0) z[i] = 4.f;",
    ),
    "the other threads": kernel(
        GUARD + "if (x[i * d] > 0.f) { z[i] = 1.f; return; } float s = 1.f;"
        " for (int t = 0; t <= d; ++t) { " + STEP + " y[i * (d + 1) + t] = s; }",
    ),
    "threads that go on by a grid": kernel(
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) { " + PATH
        + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; } }", grid="1",
    ),
    "going on downwards": kernel(
        "for (int i = n - 1 - (int)threadIdx.x; i >= 0; i -= 64) { " + PATH
        + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; } }", grid="1",
    ),
    "downwards behind the test": kernel(
        GUARD + "float s = 1.f; for (unsigned t = d + 1; t-- > 0;) { " + STEP + " y[i * (d + 1) + t] = s; }"
    ),
    "the step before": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) y[i * (d + 1) + t + 1] = y[i * (d + 1) + t] * 0.5f + x[i * d + t];"
    ),
    "two steps before, maybe": kernel(
        GUARD + "for (int t = 0; t < d; ++t) { float s = x[i * d + t]; if (t > 0) s += y[i * (d + 1) + t - 1];"
        " if (t > 1) s -= y[i * (d + 1) + t - 2]; y[i * (d + 1) + t] = s; } y[i * (d + 1) + d] = 0.f;"
    ),
    "differences": kernel(
        GUARD + "for (int t = 0; t < d - 1; ++t) y[i * (d + 1) + t] = x[i * d + t + 1] - x[i * d + t];"
        " y[i * (d + 1) + d - 1] = y[i * (d + 1) + d] = 0.f;"
    ),
    "either way": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP
        + " if (s > 2.f) { y[i * (d + 1) + t + 1] = 1.f; s = 0.f; } else y[i * (d + 1) + t + 1] = s; }"
    ),
    "steps of its own": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) y[i * (d + 1) + t + 1] = 0.f;"
        " for (int t = i % 3; t < d - i % 5; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; }"
    ),
    "steps of its own by a variable from before": kernel(
        GUARD + PATH + "int t; for (t = 0; t < d; ++t) y[i * (d + 1) + t + 1] = 0.f;"
        " for (t = d - i % 3; t > 0; --t) { " + STEP + " y[i * (d + 1) + t] = s; } z[i] = t;"
    ),
    "steps that data tells": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) y[i * (d + 1) + t + 1] = 0.f; const auto end = x[i * d] & 15;"
        " for (int t = 0; t < end && t < d; ++t) z[i * 3 * d + t] = 1.f; const auto many = x[i * d];"
        " for (int t = 0; t < min(max(many, 0), d); ++t) { " + STEP + " } y[i * (d + 1)] = s;"
        " for (int t = 0; t < d; ++t) z[i * 3 * d + t] = y[i * (d + 1) + t];", x="const int *x",
    ),
    "threads of both ways": kernel(
        GUARD + PATH + "if (i % 3 == 0) { for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; } }"
        " else { for (int t = d - 1; t >= 0; --t) { s -= 1.f; y[i * (d + 1) + t + 1] = s + x[i * d + t]; } }"
    ),
    "sections of a row": kernel(
        GUARD + PATH + "for (int part = 0; part < 3; ++part) for (int t = 0; t < d; ++t) { " + STEP
        + " z[i * 3 * d + part * d + t] = s + part; }"
    ),
    "steps that branch": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) { if (s > 2.f) s -= i; else { "
        "for (int j = 0; j < i % 4; ++j) s += 1.f; }"
        " float *at = y + i * (d + 1) + 1; if (s < 0.f) at[t] = 9.f; at[t] = s; }"
    ),
    "no guard": kernel(
        ID + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " y[i * (d + 1) + t + 1] = s; }", grid='"n"'
    ).replace('["n", "d + 1"]', '["n * 64", "d + 1"]'),
    "a return behind a macro": kernel(
        GUARD + "LEAVE_IF(i % 5 == 2) " + PATH + "for (int t = 0; t < d; ++t) { " + STEP
        + " y[i * (d + 1) + t + 1] = s; }", before="#define LEAVE_IF(test) if (test) return;",
    ),
    "a macro": kernel(
        GUARD + PATH + "for (int t = 0; t < d; ++t) { " + STEP + " y[AT(i, t + 1)] = s; }",
        before="#define AT(i, t) ((i) * (d + 1) + (t))",
    ),
    "doubles and integers": kernel(
        GUARD + "double s = 1; int c = i; for (int t = 0; t < d; ++t) { s = s * 0.5 + t; c = c * 3 + x[i * d + t];"
        " y[i * (d + 1) + t] = s; z[i * 3 * d + t] = c; }", x="const unsigned char *x", y="double *y", z="int *z",
    ),
    "vectors": kernel(
        GUARD + "float3 s = make_float3(1.f, 2.f, 3.f); for (int t = 0; t < d; ++t) { s.x += t; s.y = s.x * 0.5f - s.z;"
        " z[i * d + t] = s; }", z="float3 *z",
    ),
    "a template": kernel(
        GUARD + "T s = 0; for (int t = 0; t < d; ++t) { s = s * T(0.5) + x[i * d + t]; y[i * (d + 1) + t] = s; }",
        x="const T *__restrict__ x", y="T *__restrict__ y", template="template <typename T>", entry="k<float>",
    ),
    "a function that steps": kernel(
        GUARD + "unsigned r = i; for (int t = 0; t < d; ++t) y[i * (d + 1) + t] = next(&r);",
        before="__device__ float next(unsigned *r) { *r = *r * 1664525u + 1013904223u; return (*r >> 8) % 16; }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OFFERED)
def test_what_is_offered_computes_the_same(name: str, subject_from, runner) -> None:
    subject = subject_from(OFFERED[name])
    moves = list(ACTION.moves(subject))
    assert moves
    for move in moves:
        changed = ACTION.apply(subject, move)
        assert "_rows<" in changed.source
        assert guard(changed, subject.candidate) is None
        runner.check(subject, changed, *({"n": n, "d": d} for n, d in SIZES))
        for sizes in ({"n": 70, "d": 37}, {"n": 33, "d": 1}):
            assert runner.faults(changed, subject.contract, sizes) == []


PATHS = GUARD + PATH + "for (int t = 0; t < d; ++t) { s = s * 0.5f + t % 5; y[i * (d + 1) + t + 1] = s; }"
LEAVING = "#define LEAVE_IF(test) do { int a = (test); if (a) return; } while (0)"
WRITES_REFUSED = {
    "a loop that ends early": ("y[i * (d + 1) + t + 1] = s;", "y[i * (d + 1) + t + 1] = s; if (s > 9.f) break;"),
    "a step that ends early": ("s = s * 0.5f", "if (t == i) continue; s = s * 0.5f"),
    "a return in the loop": ("s = s * 0.5f", "if (t == i) return; s = s * 0.5f"),
    "a return in a switch": ("float s", "if (i == 5) goto out; out: if (i == 5) return; float s"),
    "a return behind a macro": ("float s", "LEAVE_IF(i == 5); float s"),
    "under a condition": ("y[i * (d + 1) + t + 1] = s;", "if (s > 1.f) y[i * (d + 1) + t + 1] = s;"),
    "in an inner loop": ("y[i * (d + 1) + t + 1]", "for (int j = 0; j < i % 2; ++j) y[i * (d + 1) + t + 1]"),
    "every second element": ("+ t + 1]", "+ t / 2 * 2]"),
    "two apart": ("y[i * (d + 1) + t + 1] = s;", "z[i * 2 * d + t * 2] = s;"),
    "columns": ("y[i * (d + 1) + t + 1]", "y[t * n + i]"),
    "neighbours": ("y[i * (d + 1) + t + 1]", "y[i + t]"),
    "places that data tells": ("y[i * (d + 1) + t + 1]", "y[(int)x[i] * (d + 1) + t]"),
    "rows that data tells": ("float s", "int i2 = x[i]; i = i2; float s"),
    "steps that a fraction tells": ("t < d", "t < x[i]"),
    "steps of its own by twos": ("t < d; ++t", "t < i; t += 2"),
    "a bound that moves": ("s = s * 0.5f", "d -= 1; s = s * 0.5f"),
    "a variable that jumps": ("s = s * 0.5f", "t += i % 2; s = s * 0.5f"),
    "the third step before is read": ("s * 0.5f", "y[i * (d + 1) + t - 2] * 0.5f"),
    "the next step is read": ("s * 0.5f", "y[i * (d + 1) + t + 2] * 0.5f"),
    "what may not be set is read": ("s * 0.5f", "(s > 2.f ? y[i * (d + 1) + t + 1] : s) * 0.5f"),
    "one way only": (
        "y[i * (d + 1) + t + 1] = s;",
        "if (s > 1.f) y[i * (d + 1) + t + 1] = s; else y[i * (d + 1) + t] = 0;",
    ),
    "another's is written": ("s = s * 0.5f", "y[(i + 1) % n * (d + 1)] = s; s = s * 0.5f"),
    "a barrier": ("s = s * 0.5f", "__syncthreads(); s = s * 0.5f"),
    "a fence": ("s = s * 0.5f", "__threadfence(); s = s * 0.5f"),
    "lanes that talk": ("s = s * 0.5f", "s += __shfl_xor_sync(0xffffffffu, s, 1); s = s * 0.5f"),
    "atomics": ("y[i * (d + 1) + t + 1] = s", "atomicAdd(&y[i * (d + 1) + t + 1], s)"),
    "verbatim text": ("s = s * 0.5f", 'asm volatile("" :: "f"(s)); s = s * 0.5f'),
    "a function that writes": ("y[i * (d + 1) + t + 1] = s", "put(y + i * (d + 1) + t, s)"),
    "a pointer that goes on": ("y[i * (d + 1) + t + 1] = s", "*(y++) = s"),
    "threads that leave a loop": ("for (int t", "while (s > 0.f) for (int t"),
}


@pytest.mark.parametrize("name", WRITES_REFUSED)
def test_what_cannot_be_told_stays(name: str, subject_from) -> None:
    old, new = WRITES_REFUSED[name]
    assert old in PATHS
    before = LEAVING + "\n__device__ void put(float *p, float s) { p[1] = s; }"
    assert list(ACTION.moves(subject_from(kernel(PATHS, before=before))))
    assert list(ACTION.moves(subject_from(kernel(PATHS.replace(old, new), before=before)))) == []


SUM = GUARD + "float s = 0.f; for (int t = 0; t < d; ++t) s = s * 0.5f + x[i * d + t]; y[i] = s;"
READS_REFUSED = {
    "maybe": ("x[i * d + t]", "(t % 3 ? x[i * d + t] : 1.f)"),
    "behind an and": ("x[i * d + t]", "(t % 3 && x[i * d + t] > 0.f)"),
    "the same for all": ("x[i * d + t]", "x[t]"),
    "a window that is wide": ("x[i * d + t]", "x[i * d + t] + x[i * d + t + 3]"),
    "the next one maybe": ("x[i * d + t]", "x[i * d + t] + (t + 1 < d ? x[i * d + t + 1] : 0.f)"),
    "as the data leads": ("x[i * d + t]", "x[i * d + (int)x[i * d + t]]"),
    "every second": ("++t) s = s * 0.5f + x[i * d + t]", "t += 2) s += x[i * d + t]"),
    "a pair in two steps": ("x[i * d + t]", "x[i * d + t / 2]"),
}


@pytest.mark.parametrize("name", READS_REFUSED)
def test_what_may_not_be_read_ahead_stays(name: str, subject_from) -> None:
    old, new = READS_REFUSED[name]
    assert old in SUM
    assert list(ACTION.moves(subject_from(kernel(SUM))))
    assert list(ACTION.moves(subject_from(kernel(SUM.replace(old, new))))) == []


@pytest.mark.parametrize(
    "change", [("block = 64", "block = 48"), ("timed = 252", "timed = 4"), ("float *y", "volatile float *y")]
)
def test_blocks_turns_and_buffers_that_do_not_fit(change: tuple[str, str], subject_from) -> None:
    text = kernel(PATHS)
    assert change[0] in text
    assert list(ACTION.moves(subject_from(text)))
    assert list(ACTION.moves(subject_from(text.replace(*change)))) == []


def test_buffers_that_may_overlap_stay(subject_from) -> None:
    text = kernel(PATHS)
    overlapping = text.replace('// entry = "k"', '// entry = "k"\n// aliasing = [["y", "z"]]')
    assert list(ACTION.moves(subject_from(text)))
    assert list(ACTION.moves(subject_from(overlapping))) == []


def test_only_what_is_written_may_be_staged(subject_from, runner) -> None:
    subject = subject_from(OFFERED["a filter"])
    names = [m.param("what") for m in ACTION.moves(subject)]
    assert set(names) == {"all", "writes"}
    changed = ACTION.apply(subject, next(m for m in ACTION.moves(subject) if m.param("what") == "writes"))
    assert "fsr_load_rows" not in changed.source
    runner.check(subject, changed, {"n": 100, "d": 70})


def test_blocks_have_room_for_what_is_offered(subject_from) -> None:
    double = kernel(PATHS.replace("float", "double"), y="double *y", block="1024", grid='"ceil_div(n, 1024)"')
    assert [m.param("turns") for m in ACTION.moves(subject_from(double))] == [4]
    single = kernel(PATHS, block="1024", grid='"ceil_div(n, 1024)"')
    assert [m.param("turns") for m in ACTION.moves(subject_from(single))] == [8]
