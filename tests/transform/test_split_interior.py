"""split-interior: away from the edges, a stencil asks for none of its neighbours whether it is there."""

from __future__ import annotations

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.stencil.interior import SplitInterior

HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// w = {min = 1, max = 4096, timed = 1024}
// h = {min = 1, max = 4096, timed = 1024}
// flags = {min = 0, max = 3, timed = 0}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// y = {role = "out", shape = ["h", "w"]}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
// block = [32, 4]
// ///
#define AT(i, j) ((j) * (w) + (i))
#define AROUND(n, m) ((((n) % (m)) + (m)) % (m))
#define BEFORE(i) ((flags & 1) ? AROUND((i), w) : max((i), 0))
#define BEHIND(i) ((flags & 1) ? AROUND((i), w) : min((i), w - 1))
"""
SIGNED = "__global__ void k(const float *x, float *y, int w, int h, int flags) {"
UNSIGNED = SIGNED.replace("int w, int h", "unsigned w, unsigned h")
IDS = "int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.y * blockDim.y + threadIdx.y;"
GUARD = "if (i >= w || j >= h) return;"
SIZES = [{"w": w, "h": h, "flags": f} for w, h, f in [(1, 1, 0), (2, 3, 1), (40, 9, 0), (33, 8, 1), (5, 5, 2)]]
STYLES = {
    "clamped": SIGNED + IDS + GUARD + """
        int left = max(i - 1, 0), right = min(w - 1, i + 1);
        y[AT(i, j)] = x[AT(left, j)] + x[AT(right, j)] + x[AT(i, max(0, j - 2))] - x[AT(i, min(j + 2, h - 1))]; }""",
    "periodic where a flag says": SIGNED + IDS + GUARD + """
        float s = 0.0f; int at;
        at = AT(BEFORE(i - 2), j);
        if (i - 2 >= 0 || (flags & 1)) { s += x[at]; }
        at = AT(BEHIND(i + 1), j);
        if (i + 1 < w || (flags & 1)) s += 3.0f * x[at];
        y[AT(i, j)] = s; }""",
    "a window": SIGNED + IDS + "if (i < w && j < h) {" + """
        float s = 0.0f; int n = 0;
        for (int dj = -1; dj <= 1; dj++) for (int di = -2; di < 3; di++) {
            int u = i + di, v = j + dj;
            if (u < 0 || u >= w || v < 0 || v > h - 1) continue;
            s += x[AT(u, v)]; n++;
        }
        y[AT(i, j)] = s + n; } }""",
    "choices": SIGNED + IDS + GUARD + """
        float c = x[AT(i, j)], l = i > 0 ? x[AT(i - 1, j)] : 0, r = i < w - 1 ? x[AT(i + 1, j)] : c;
        float u = !(j < 1) ? x[AT(i, j - 1)] : 1.0f;
        y[AT(i, j)] = l + r * 2.0f - u; }""",
    "unsigned": UNSIGNED + IDS.replace("int ", "unsigned int ") + GUARD + """
        unsigned int l = i > 0 ? i - 1 : 0, r = i + 1 < w ? i + 1 : w - 1, u = j < 1 ? 0 : j - 1;
        y[AT(i, j)] = x[AT(l, j)] + x[AT(r, j)] - x[AT(i, u)]; }""",
}  # fmt: skip


def ways(source: str) -> tuple[str, str]:
    """The text of the interior's way, and of the other."""
    inner, _, outer = source.partition("} else")
    return inner.rsplit("if (i >= ", 1)[-1], outer


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_no_neighbour_is_asked_for_inside(text: str, subject_from, apply_move, runner) -> None:
    subject = subject_from(HEAD + text)
    changed = apply_move(SplitInterior(), subject, "@kernel")
    runner.check(subject, changed, *SIZES)
    inner, outer = ways(changed.source)
    body = inner.partition("{")[2]
    asked = [word for word in ("max(", "min(", "%", "continue", "flags", " ? ") if word in body]
    assert asked == []
    assert "x[" in outer or "AT(" in outer
    again = type(subject)(changed, parse_kernels(changed.source), subject.contract)
    assert not list(SplitInterior().moves(again))


def test_edges_are_as_far_as_the_reach(subject_from, apply_move) -> None:
    wanted = {
        "clamped": "i >= 1 && i + 1 < w && j >= 2 && j + 2 < h",
        "periodic where a flag says": "i >= 2 && i + 1 < w",
        "a window": "i >= 2 && i + 2 < w && j >= 1 && j + 1 < h",
        "unsigned": "i >= 1 && i + 1 < w && j >= 1",
    }
    for style, test in wanted.items():
        changed = apply_move(SplitInterior(), subject_from(HEAD + STYLES[style]), "@kernel")
        assert f"if ({test}" in changed.source, changed.source


NONE = {
    "an edge that is asked for once": SIGNED + IDS + GUARD + """
        if (i == 0 || j == 0 || i == w - 1 || j == h - 1) { y[AT(i, j)] = x[AT(i, j)]; return; }
        y[AT(i, j)] = x[AT(i - 1, j)] + x[AT(i + 1, j)] - x[AT(i, j - 1)] * x[AT(i, j + 1)]; }""",
    "no edges": SIGNED + IDS + GUARD + "y[AT(i, j)] = 2.0f * x[AT(i, j)]; }",
    "threads that meet": SIGNED + IDS + "__shared__ float s[128]; s[threadIdx.x] = x[AT(max(i - 1, 0), j)];"
        "__syncthreads(); y[AT(i, j)] = s[threadIdx.x]; }",
    "edges that data tells": SIGNED + IDS + GUARD + "int e = (int)x[0]; y[AT(i, j)] = x[AT(max(i - e, 0), j)]; }",
    "an id that goes on": SIGNED + IDS + GUARD + "i += 3; y[AT(max(i - 3, 0), j)] = x[AT(max(i - 4, 0), j)]; }",
    "a size that changes": SIGNED + IDS + GUARD + "w -= 1; y[j] = x[min(i + 1, w)]; }",
    "below nought where that is huge": UNSIGNED + IDS.replace("int ", "unsigned int ") + GUARD
        + "y[AT(i, j)] = i - 1 < w ? x[AT(i - 1, j)] : 0.0f; }",
}  # fmt: skip


@pytest.mark.parametrize("text", NONE.values(), ids=NONE)
def test_what_is_no_edge_stays(text: str, subject_from) -> None:
    assert not list(SplitInterior().moves(subject_from(HEAD + text)))


def test_a_whole_number_stays_a_fraction_beside_one(subject_from, apply_move, runner) -> None:
    text = SIGNED + IDS + GUARD + "y[AT(i, j)] = (i > 0 ? i - 1 : 0.5f) / 2 + x[AT(max(i - 1, 0), max(j - 1, 0))]; }"
    subject = subject_from(HEAD + text)
    changed = apply_move(SplitInterior(), subject, "@kernel")
    assert "? i - 1 : 0.5f" in ways(changed.source)[0]
    runner.check(subject, changed, *SIZES)
