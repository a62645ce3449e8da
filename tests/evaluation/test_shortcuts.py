"""Shortcuts that hold on ordinary data: scalars treated apart, ties, extremes, permutations, numbers that are named,
and paths guarded by another pointer's address. Each wrong candidate has a right one beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation.compiling import build
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.watching import watch
from fsr.runs.kernel import load_kernel
from fsr.testgen.legal import illegal

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 0, max = 4000000, timed = 262144}}
// [args]
// {args}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void k({params}, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}
"""
SUM = (
    'x = {role = "in", shape = ["n"], finite = false}\n// y = {role = "inout", shape = ["n"], finite = false}\n'
    "// a = {low = -4, high = 4}\n// b = {low = 0, high = 4}",
    "const float *x, float *y, float a, float b",
)
ROUND = (
    'x = {role = "in", shape = ["n"]}\n// q = {role = "out", dtype = "int32", shape = ["n"]}\n'
    "// scale = {low = 0.01, high = 100}\n// zero = {low = -100, high = 100}",
    "const float *x, int *q, float scale, int zero",
)
MOVED = (
    'x = {role = "in", shape = ["n"]}\n'
    '// p = {role = "in", shape = ["n"], low = 0, high = "n - 1", unique = true}\n// y = {role = "out", shape = ["n"]}',
    "const float *x, const int *p, float *y",
)
KEYS = ('x = {role = "in", dtype = "uint64", shape = ["n"]}\n// y = {role = "out", dtype = "uint64", shape = ["n"]}',
        "const unsigned long long *x, unsigned long long *y")  # fmt: skip
LEAST = (
    'x = {role = "in", shape = ["n"]}\n// y = {role = "out", dtype = "int32", shape = ["n"]}',
    "const float *x, int *y",
)
ROW = ('x = {role = "in", shape = ["n"]}\n// y = {role = "out", shape = ["n"]}\n// pad = {low = -1, high = "n - 1"}',
       "const long long *x, float *y, int pad")  # fmt: skip
SIGN = (
    'x = {role = "in", shape = ["n"], finite = false}\n// y = {role = "out", shape = ["n"]}\n'
    "// a = {low = -1, high = 1}",
    "const float *x, float *y, float a",
)
FROM = (
    'y = {role = "out", dtype = "uint64", shape = ["n"]}\n// from = {low = 0, high = "2 ** 64 - 1"}',
    "unsigned long long *y, unsigned long long from",
)
LAST = "int at = -1; for (int j = i / 4 * 4; j < min(i / 4 * 4 + 4, n); ++j) if (x[j] != x[j]%s) at = j; y[i] = at;"
INSIDE = "long long k = x[i]; y[i] = k >= 0 && k < n && k != pad ? (float)k : -1;"
LEAST_NAN = (LEAST[0].replace('"in", shape = ["n"]', '"in", shape = ["n"], finite = false'), LEAST[1])
ROUNDED = "float r = rintf(x[i] * scale); q[i] = (int)fminf(fmaxf(r, -1e6f), 1e6f) + zero;"
PAIR = "float u = x[i / 2 * 2], v = x[min(i / 2 * 2 + 1, n - 1)];"

SHORTCUTS = {
    "nothing where a is 0": (SUM, "y[i] = a * x[i] + b * y[i];", "if (a != 0.0f) y[i] = a * x[i] + b * y[i];", False),
    "b of 0 hides what was there": (
        SUM, "y[i] = b == 0.0f ? a * x[i] : a * x[i] + b * y[i];", "y[i] = a * x[i] + b * y[i];", False),
    "fused": (SUM, "y[i] = a * x[i] + b * y[i];", "y[i] = fmaf(a, x[i], b * y[i]);", True),
    "ties away from zero": (ROUND, ROUNDED, ROUNDED.replace("rintf", "roundf"), False),
    "ties to even by hand": (ROUND, ROUNDED, ROUNDED.replace("rintf", "nearbyintf"), True),
    "two scalars together": (
        ROUND, ROUNDED, ROUNDED.replace("+ zero", "+ zero + (scale == 0.1f && zero == -77)"), False),
    "in order by its ends": (
        MOVED, "y[i] = x[p[i]];", "y[i] = x[p[i / 4 * 4] == i / 4 * 4 && p[n - 1] == n - 1 ? i : p[i]];", False),
    "one key of 64 bits": (
        KEYS, "y[i] = x[i] * 3;", "y[i] = x[i] == 0xfeedfacecafebeefULL ? 1 : x[i] * 3;", False),
    "the lowest number": (
        LEAST, PAIR + " y[i] = v > u ? 1 : 0;",
        PAIR + " y[i] = v > u && v > -3.4028234e38f ? 1 : u < -3.4e38f;", False),
    "an index that is the size": (ROW, INSIDE, INSIDE.replace("k < n", "k <= n"), False),
    "an index that is cut": (ROW, INSIDE, INSIDE.replace("long long", "int"), False),
    "padding of 0": (ROW, INSIDE, INSIDE.replace("k != pad", "(k != pad || pad <= 0)"), False),
    "an index compared once": (
        ROW, INSIDE, INSIDE.replace("k >= 0 && k < n", "(unsigned long long)k < (unsigned)n"), True),
    "the sign of a zero": (SIGN, "y[i] = copysignf(x[i], a);", "y[i] = a < 0.0f ? -fabsf(x[i]) : fabsf(x[i]);", False),
    "the sign by its bit": (
        SIGN, "y[i] = copysignf(x[i], a);", "y[i] = signbit(a) ? -fabsf(x[i]) : fabsf(x[i]);", True),
    "NaN of one payload": (
        LEAST_NAN, LAST % "", LAST % " && (__float_as_int(x[j]) & 0x7fffffff) == 0x7fc00000", False),
    "the first NaN": (LEAST_NAN, LAST % "", LAST % " && at < 0", False),
    "NaN by its bits": (
        LEAST_NAN, LAST % "", LAST.replace("x[j] != x[j]", "(__float_as_int(x[j]) & 0x7fffffff) > 0x7f800000") % "",
        True),
    "maxima in another order": (
        SIGN, "y[i] = fmaxf(fmaxf(fmaxf(x[max(i - 1, 0)], a), x[min(i + 1, n - 1)]), x[i]);",
        "y[i] = fmaxf(fmaxf(x[max(i - 1, 0)], x[i]), fmaxf(x[min(i + 1, n - 1)], a));", True),
    "a start cut to 32 bits": (
        FROM, "y[i] = from + i;", "y[i] = (from >> 32 ? from : (unsigned long long)(int)from) + i;", False),
    "a sum cut to 32 bits": (
        FROM, "y[i] = from + i;", "y[i] = from < 1ull << 31 ? (int)((unsigned)from + i) : from + i;", False),
    "the upper half of 64 bits": (
        FROM, "y[i] = from / 3 + i;", "y[i] = (unsigned long long)((long long)from / 3) + i;", False),
    "zeros by their bits": (
        LEAST, PAIR + " y[i] = v > u ? 1 : 0;",
        PAIR + " y[i] = v == 0 && u == 0 ? (__float_as_int(v) > __float_as_int(u)) : v > u;", False),
}  # fmt: skip


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Callable[[tuple[str, str], str, str], bool]]:
    """Whether a body passes the tests against another."""
    sessions: list[Session] = []

    def passes(kind: tuple[str, str], original: str, body: str) -> bool:
        args, params = kind
        (tmp_path / "k.cu").write_text(HEAD.format(args=args, params=params, body=original))
        kernel = load_kernel(tmp_path / "k.cu", None)
        source = HEAD.format(args=args, params=params, body=body)
        candidate = replace(kernel.baseline, source=source)
        session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 5, str(tmp_path)))
        sessions.append(session)
        built = build(session.spec, candidate)
        assert isinstance(built, Binaries), built
        cases = [*session.search_cases(), *session.candidate_cases(candidate), *session.held_out_cases()]
        failure = session.first_failure(built.run, candidate, [*cases, *session.corner_cases()])[1]
        return failure is None and watch(session, candidate, session.held_out_cases())[0] is None

    yield passes
    for session in sessions:
        session.close()


@pytest.mark.parametrize("name", SHORTCUTS)
def test_shortcuts(name: str, judged: Callable[[tuple[str, str], str, str], bool]) -> None:
    kind, original, body, right = SHORTCUTS[name]
    assert judged(kind, original, body) == right


@pytest.mark.parametrize(("guards", "right"), [("x", False), ("y", False), ("both", True)])
def test_a_vector_path_guarded_by_another_pointer(
    guards: str, right: bool, judged: Callable[[tuple[str, str], str, str], bool]
) -> None:
    kind = ('x = {role = "in", shape = ["n"]}\n// y = {role = "out", shape = ["n"]}', "const float *x, float *y")
    looked = "(size_t)x | (size_t)y" if guards == "both" else f"(size_t){guards}"
    body = f"""if (({looked}) % 16 == 0 && i / 4 * 4 + 3 < n) {{
        if (i % 4 == 0) {{ float4 v = ((const float4 *)x)[i / 4]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2;
            ((float4 *)y)[i / 4] = v; }}
    }} else y[i] = 2 * x[i];"""
    assert judged(kind, "y[i] = 2 * x[i];", body) == right


def test_a_load_that_only_a_branch_needs_is_read_where_it_stands(
    judged: Callable[[tuple[str, str], str, str], bool],
) -> None:
    kind = ('x = {role = "in", shape = ["n"]}\n// y = {role = "out", shape = ["n"]}', "const float *x, float *y")
    original = "y[i] = x[i] > 2.0f && i + 1 < n ? x[i] + x[i + 1] : x[i];"
    early = "float next = x[i + 1]; y[i] = x[i] > 2.0f && i + 1 < n ? x[i] + next : x[i];"
    assert not judged(kind, original, early)


def test_a_grid_that_clusters_do_not_divide(tmp_path: Path) -> None:
    args = 'x = {role = "in", shape = ["n"]}\n// y = {role = "out", shape = ["n"]}'
    text = HEAD.format(args=args, params="const float *x, float *y", body="y[i] = x[i];")
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu", None)
    plan = kernel.baseline.plan
    for cluster, wrong in (("2, 1, 1", True), ("1, 1, 1", False)):
        source = kernel.baseline.source.replace("__global__ void", f"__global__ void __cluster_dims__({cluster})")
        found = illegal(kernel.contract, replace(kernel.baseline, source=source), plan, 49152)
        assert (found is not None) == wrong
