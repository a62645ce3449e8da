"""Forms that alternate from element to element, found whatever each of them is."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.alternate_forms import alternations
from fsr.lifting.points import Points
from tests.lifting.lifted import lifted

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// w = {min = 1, max = 7680, timed = 3840}
// h = {min = 1, max = 4320, timed = 2160}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// y = {role = "out", shape = ["h", "w", COUNT]}
// [launch]
// grid = ["ceil_div(w, 64)", "ceil_div(h, 4)"]
// block = [64, 4]
// ///
__global__ void k(const unsigned char *x, unsigned char *y, int w, int h) {
  int j = blockIdx.x * 64 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
  if (j >= w || i >= h) return;
  int l = max(j - 1, 0), r = min(j + 1, w - 1), u = max(i - 1, 0), d = min(i + 1, h - 1);
  BODY
}
"""
FORMS = (
    "x[i * w + j]",
    "(x[i * w + l] + x[i * w + r]) >> 1",
    "(x[u * w + j] + x[d * w + j]) >> 1",
    "(x[i * w + l] + x[i * w + r] + x[u * w + j] + x[d * w + j]) >> 2",
    "(x[u * w + l] + x[u * w + r] + x[d * w + l] + x[d * w + r]) >> 2",
    "255 - x[i * w + j]",
)


def colours(seed: int) -> str:
    """A kernel of which each of four kinds of pixels has forms of its own."""
    rng, count = random.Random(seed), 1 + 2 * (seed % 2)
    cases = []
    for parity in range(4):
        made = [f"y[(i * w + j) * {count} + {c}] = {rng.choice(FORMS)};" for c in range(count)]
        cases.append(f"if (i % 2 == {parity // 2} && j % 2 == {parity % 2}) {{ {' '.join(made)} }}")
    return TEXT.replace("COUNT", str(count)).replace("BODY", "\n  else ".join(cases))


@watched
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_pixels_of_four_kinds(seed: int, tmp_path: Path) -> None:
    found = lifted(tmp_path, colours(seed))
    assert found.computation is not None, found.why


@watched
def test_a_column_of_three_is_another(tmp_path: Path) -> None:
    body = "y[i * w + j] = j % 3 == 1 ? x[i * w + j] / 3 : x[i * w + l] + 2 * x[i * w + r];"
    found = lifted(tmp_path, TEXT.replace("COUNT", "1").replace("BODY", body))
    assert found.computation is not None, found.why


def points(labels: np.ndarray) -> tuple[Points, list[int]]:
    at = list(np.ndindex(*labels.shape))
    columns = {name: np.array([p[d] for p in at]) for d, name in enumerate(("i", "j", "i2")[: labels.ndim])}
    return Points(columns, np.zeros(len(at), np.int64), tuple(range(len(at)))), [int(labels[p]) for p in at]


def test_turns_are_told_by_pairs() -> None:
    i, j, c = np.indices((9, 11, 3))
    assert alternations(*points(i % 2 + 2 * (j % 2) + 4 * c), ["i", "j", "i2"]) == {"i": 2, "j": 2, "i2": 3}
    assert alternations(*points((j % 3 + 0 * i)[:, :, 0]), ["i", "j"]) == {"j": 3}
    assert alternations(*points((i > 0)[:, :, 0] * 1), ["i", "j"]) == {}
    assert alternations(*points((i * j)[:, :, 0] * 1), ["i", "j"]) == {}
    assert alternations(*points((i + j)[:2, :2, 0] % 2), ["i", "j"]) == {}
