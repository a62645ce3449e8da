"""share-loop where threads have arrays of which each lane keeps the elements of its turns; or all lanes keep all."""

from __future__ import annotations

import random
import re

import pytest

from fsr.transform.lanes.action import LANES, ShareLoop
from tests.transform.test_share_loop import GUARD, agree, kernel

SCAN = GUARD + """
    const int c = m < 48 ? m : 48;
    float h[48];
    for (int s = 0; s < c; s++) h[s] = 0.5f;
    for (int t = 0; t < 5; t++) {
        float sum = 0.0f;
        for (int s = 0; s < c; s++) {
            h[s] = 0.25f * h[s] + x[(i * 3 + t) % n * m + s];
            sum += h[s] * (t + 1);
        }
        y[i] += sum;
    }"""  # fmt: skip
ATTENTION = GUARD + """
    float q[32], acc[32] = {0.0f}, most = -1e30f, whole = 0.0f;
    #pragma unroll
    for (int d = 0; d < 32; ++d) q[d] = m ? x[i * m + d % m] : 1.0f;
    for (int k = 0; k < (m < 6 ? m : 6); ++k) {
        float dot = 0.0f;
        for (int d = 0; d < 32; ++d) dot += q[d] * x[k % n * m + d % m];
        const float next = fmaxf(most, dot), scale = expf(most - next), p = expf(dot - next);
        for (int d = 0; d < 32; ++d) acc[d] = acc[d] * scale + p * x[k % n * m + d % m];
        whole = whole * scale + p;
        most = next;
    }
    for (int d = 0; d < 32; ++d) if (d < m) z[i * m + d] = acc[d] / whole;"""  # fmt: skip
SIZES = [{"n": n, "m": m} for n, m in [(1, 0), (3, 5), (33, 17), (40, 48)]]


@pytest.mark.parametrize("body", [SCAN, ATTENTION])
def test_lanes_keep_elements(body: str, subject_from, runner) -> None:
    subject = subject_from(kernel(body))
    moves = [m for m in ShareLoop().moves(subject) if m.param("loops") == "outer"]
    assert {m.param("lanes") for m in moves} == set(LANES)
    for move in moves:
        source, lanes = ShareLoop().apply(subject, move).source, int(move.param("lanes"))
        assert re.search(rf"(h|acc)\[{-(-48 // lanes)}\]|acc\[{32 // lanes}\]", source)
    agree(runner, subject, moves, SIZES)


def _composed(chance: random.Random) -> str:
    """Arrays that loops alike go through, in loops that all lanes go through, with folds and stores between."""
    start, step = chance.choice([(0, 1), (0, 1), (0, 2), (1, 1), (3, 2)])
    size = chance.choice([40, 64, 200])
    head = f"for ({chance.choice(['int', 'unsigned int', 'size_t'])} s = {start}; s < c; s += {step})"
    parts = [f"    const int c = m < {size} ? m : {size};\n    float total = y[i], h[{size}], g[{size}] = {{}};"]
    parts.append(f"    {head} h[s] = x[i * m + s] * 0.5f;")
    inner = [
        f"{head} {{ h[s] = 0.5f * h[s] + x[(i + t) % n * m + s]; total += h[s]; }}",
        f"{head} {{ if (h[s] > 0.1f) g[s] += h[s]; else {{ g[s] *= 0.5f; continue; }} total += g[s] * 0.1f; }}",
        f"{{ float most = -10.0f; {head} most = fmaxf(most, h[s] - g[s]); total += most; }}",
        f"{{ float best = 9.0f; int at = -1; {head} if (g[s] < best) {{ best = g[s]; at = (int)s; }}"
        " total += 0.01f * at; }",
        f"if (ptr[i] % 2 == 0) {{ {head} g[s] = h[s] + 0.5f * total / (c + 1); }}",
    ]
    for _ in range(chance.randint(1, 2)):
        chosen = "\n        ".join(chance.sample(inner, chance.randint(1, 4)))
        head_of = chance.choice(["for (int t = 0; t < 3; ++t)", "for (int t = i % 3; t >= 0; --t)"])
        parts.append(f"    {head_of} {{\n        {chosen}\n    }}")
    parts.append(chance.choice(["", f"    {head} z[i * m + s] = h[s] + g[s];"]))
    return GUARD + "\n".join((*parts, "    y[i] = total;"))


@pytest.mark.parametrize("seed", range(10))
def test_composed_arrays(seed: int, subject_from, runner) -> None:
    chance = random.Random(seed)
    subject = subject_from(kernel(_composed(chance)))
    moves = list(ShareLoop().moves(subject))
    assert moves
    agree(runner, subject, chance.sample(moves, min(2, len(moves))), SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[i] += sum;", "y[i] += sum + h[0];"),
        ("y[i] += sum;", "y[i] += sum + h[t];"),
        ("sum += h[s] * (t + 1);", "sum += h[s] * h[c - 1 - s];"),
        ("h[s] = 0.25f * h[s]", "h[s] = 0.25f * h[s ^ 1]"),
        ("y[i] += sum;", "y[i] += sum + first(h);"),
        ("y[i] += sum;", "for (int s = 1; s < c; s++) h[s] += 1.0f; y[i] += sum;"),
        ("y[i] += sum;", "for (int s = 0; s < c; s += 2) h[s] += 1.0f; y[i] += sum;"),
        ("y[i] += sum;", "for (int s = 0; s < 3; s++) h[s] += 1.0f; y[i] += sum;"),  # too short to share
        ("y[i] += sum;", "for (int s = 0; s < c; s++) { if (h[s] > 2.0f) break; y[i] += 1.0f; } y[i] += sum;"),
        ("y[i] += sum;", "for (int s = 0; s < c; s++) add(h[s]); y[i] += sum;"),
        ("y[i] += sum;", "for (int s = 0; s < c; s++) *(&h[s]) += 1.0f; y[i] += sum;"),
        ("y[i] += sum;", "float *p = h; for (int s = 0; s < c; s++) p[s] += 1.0f; y[i] += sum;"),
        ("y[i] += sum;", "for (int s = 0; s < c; s++) { int r = s; int s = r / 2; h[s] += 1.0f; } y[i] += sum;"),
        ("h[s] = 0.5f;", "h[s] = s ? h[s - 1] : 1.0f;"),
    ],
)  # fmt: skip
def test_all_lanes_keep_all_where_anything_else_is_touched(old: str, new: str, subject_from, runner) -> None:
    assert old in SCAN
    helpers = "__device__ float first(const float *h) { return h[0]; }\n__device__ void add(float &v) { v += 1.0f; }\n"
    subject = subject_from(kernel(SCAN.replace(old, new), helpers))
    moves = list(ShareLoop().moves(subject))
    for move in moves:
        source = ShareLoop().apply(subject, move).source
        assert "h[48]" in source
        assert "h[s_turn" not in source
        assert not re.search(r"s = lane\b[^{]*{?[^}]*\bh\[s\] [+*]?=", source)
    if moves:
        agree(runner, subject, moves[-2:], SIZES[1:])
