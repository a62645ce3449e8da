"""reciprocal: one division for several by the same, wherever nothing changes it between them."""

from __future__ import annotations

import pytest

from fsr.transform.details.reciprocal import Reciprocal

ACTION = Reciprocal()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 1024}
// [args]
// a = {role = "in", shape = ["n", 4], low = 0.5, high = 4, dtype = "DTYPE"}
// y = {role = "inout", shape = ["n", 4], dtype = "DTYPE"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
typedef TYPE real;
__device__ real more(real &v) { v += 1; return v; }
__global__ void k(const real *a, real *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  const real *p = a + 4 * i;
  real u = p[0], v = p[1], w = p[2], s = p[3];
  BODY
  y[4 * i] = u; y[4 * i + 1] = v; y[4 * i + 2] = w; y[4 * i + 3] = s;
}"""
NORM = "real d = sqrt(u * u + v * v + w * w); u = u / d; v = v / d; w /= d;"
SHARED = {
    "a norm": (NORM, 1),
    "whole numbers": ("u /= s; v = v / s; w = 2 / s;", 1),
    "a sum of two": ("u = u / (v + s) + w / (v + s);", 1),
    "branches": ("if (u > 1) { u = v / s; } else { u = w / s; }", 1),
    "one behind the other": ("u = u / s; v = v / s; s = s + 1; u = u / s; v = v / s;", 2),
    "within": ("if (u > 1) { s = s + 1; u = u / s; v = v / s; }", 1),
    "two of them": ("u = u / s + v / w; v = v / s + 1 / w;", 2),
    "in a loop": ("for (int j = 0; j < 3; j++) { s = s + 1; u = u / s; v += v / s; }", 1),
}


def text(body: str, type_: str = "float") -> str:
    return TEXT.replace("BODY", body).replace("DTYPE", {"float": "float32", "double": "float64"}[type_]).replace(
        "TYPE", type_
    )  # fmt: skip


@pytest.mark.parametrize("type_", ["float", "double"])
@pytest.mark.parametrize("name", SHARED)
def test_neighbours_share_a_division(name, type_, subject_from, apply_move, close_outputs):
    body, inverses = SHARED[name]
    subject = subject_from(text(body, type_))
    changed = apply_move(ACTION, subject, "@kernel")
    assert changed.source.count(f"const {type_} inverse") == inverses
    assert changed.source.count("= 1.0") == inverses
    close_outputs(subject, changed, [{"n": n} for n in (1, 63, 64, 130)])


@pytest.mark.parametrize(
    "body",
    [
        "u = u / s;",
        "u = u / s; v = v / w;",
        "u = u / s; s = s + 1; v = v / s;",
        "u = u / s; more(s); v = v / s;",
        "u = u / 3; v = v / 3;",
        "u = u / p[3]; v = v / p[3];",
        "if (u > 1) { real d = v; u = u / d; } else { real d = w; u = u / d; }",
        "int d = i + 1; u = (i + 5) / d; v = (i + 7) / d;",
        "u = u / more(s); v = v / more(s);",
    ],
)
def test_what_changes_or_is_no_number_is_left(body, subject_from):
    assert not list(ACTION.moves(subject_from(text(body))))


def test_a_double_is_not_divided_by_a_float_s_reciprocal(subject_from):
    body = "float d = s; double e = u / d; e = e / d + 1.0 / d * e; u = e;"
    source = text(body).replace("1.0 / d * e", "e / d")
    moves = list(ACTION.moves(subject_from(source)))
    assert not moves, "only u / d is a float's"


@pytest.mark.parametrize("type_", ["float", "double"])
def test_in_front_of_a_loop(type_, subject_from, apply_move, close_outputs):
    subject = subject_from(text("for (int j = 0; j < 5; j++) { u = u / s + 1; if (v > 2) break; }", type_))
    changed = apply_move(ACTION, subject, "@loop:j")
    assert f"const {type_} inverse = 1.0" in changed.source
    close_outputs(subject, changed, [{"n": n} for n in (1, 63, 64, 130)])
