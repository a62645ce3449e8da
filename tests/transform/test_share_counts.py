"""share-loop where turns count what they find, and stop when it is enough: composed loops, in the ways people write
them, or no move where order or effects would differ."""

from __future__ import annotations

import random

import pytest

from fsr.transform.lanes.action import ShareLoop
from tests.transform.test_share_loop import GUARD, agree, kernel

SETS = (
    "const float v = x[i * m + j];",
    "float v = 0.0f; for (int l = 0; l < 3; l++) {{ float t = x[(i * m + j + l) % (n * m)]; v += t * t; }}",
    "float u = x[i * m + j], v; v = u * u - 0.1f;",
)
TESTS = ("v > 0.3f", "v * 0.5f < {0}", "idx[i * m + j] % 3 != 0 && v < 0.8f")
STORES = (
    "z[i * m + c] = v; c++;",
    "z[i * m + c++] = j;",
    "c += 1; z[i * m + c - 1] = v + j;",
    "if (c == 0) for (int l = 0; l < m; l++) z[i * m + l] = j; z[i * m + c] = v; ++c;",
)
# {0}: how a turn begins, {1}: what is tested, {2}: what is done, {3}: how many are enough
FORMS = (
    "for (int j = 0; j < m; j++) {{ {0} if ({1}) {{ {2} }} }}",
    "for (int j = 0; j < m; j++) {{ {0} if ({1} && c < {3}) {{ {2} }} }}",
    "for (int j = 0; j < m; ++j) {{ {0} if ({1}) {{ {2} if (c >= {3}) break; }} }}",
    "for (int j = 0; j < m; ++j) {{ {0} if ({1}) {{ {2} }} if (c == {3}) break; }}",
    "for (int j = 0; j < m && c < {3}; ++j) {{ {0} if ({1}) {{ {2} }} }}",
    "for (int j = 0; j < m; ++j) {{ if (!(c < {3})) break; {0} if (!({1})) continue; {2} }}",
    "for (int j = 0; j < m; ++j) {{ {0} if (j != i) {{ if ({1}) {{ {2} if ({3} <= c) break; }} }} }}",
    "int j = 0; while (c < {3} && j < m) {{ {0} if ({1}) {{ {2} }} ++j; }}",
    "for (int j = m - 1; j >= 0; j--) {{ {0} if ({1}) {{ if (c > {3} - 1) break; {2} }} }}",
    "for (int j = 0; j < m; j += 2) {{ {0} if (c < {3}) {{ if ({1}) {{ {2} }} }} else break; }}",
)
ENOUGH = ("3", "1", "few", "m / 2 + 1", "32")


@pytest.mark.parametrize("seed", range(60))
def test_counts_are_as_the_thread_counted(seed: int, subject_from, runner) -> None:
    rng = random.Random(8100 + seed)
    form = FORMS[seed % len(FORMS)]
    begin, test = rng.choice(SETS).format(), rng.choice(TESTS).format(rng.choice(["0.2f", "0.4f"]))
    loop = form.format(begin, test, rng.choice(STORES), enough := rng.choice(ENOUGH))
    few = "int few = 2;" if enough == "few" and rng.random() < 0.5 else "int few = i % 4;"
    subject = subject_from(kernel(f"{GUARD} {few} int c = 0; {loop} y[i] = c;"))
    moves = list(ShareLoop().moves(subject))
    assert moves, loop
    agree(runner, subject, moves)


def test_a_count_that_goes_on_from_loop_to_loop(subject_from, runner) -> None:
    subject = subject_from(
        kernel(f"""{GUARD}
    int c = 0;
    for (int r = 0; r < 3; r++)
        for (int j = 0; j < m; j++) {{
            if (c >= m) break; if (x[i * m + j] * r > 0.3f) {{ z[i * m + c] = r; c++; }}
        }}
    y[i] = c;""")
    )
    agree(runner, subject, list(ShareLoop().moves(subject)))


@pytest.mark.parametrize("begin", ["c = 5;", "int *at = &c; *at = 5;"])
def test_a_count_that_begins_beyond_its_limit(begin: str, subject_from, runner) -> None:
    subject = subject_from(
        kernel(f"""{GUARD}
    int c = 0;
    if (m) {{
        {begin}
        for (int j = 0; j < m; j++)
            if (x[i * m + j] > 0.3f) {{ z[i * m + c - 5] = j; c++; if (c == 3) break; }}
    }}
    y[i] = c;""")
    )
    if moves := list(ShareLoop().moves(subject)):
        agree(runner, subject, moves)
    assert moves or "&" in begin


@pytest.mark.parametrize(
    "loop",
    [
        # what is written there is looked at
        "for (int j = 0; j < m; j++) { if (z[i * m + j] > 0.3f) { z[i * m + c] = j; c++; } }",
        # another place than the count's
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.3f) { z[i * m + j - c] = j; c++; } }",
        "for (int j = 0; j < m; j++) { z[i * m + c] = j; if (x[i * m + j] > 0.3f) { c++; } }",
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.3f) { z[i * m + c / 2] = j; c++; } }",
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.3f) { z[i * m + c] = j; c -= 1; } }",
        # what goes on where the count has stopped
        "for (int j = 0; j < m; j++) { w[i] = j; if (x[i * m + j] > 0.3f && c < 3) { z[i * m + c] = j; c++; } }",
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.3f) { z[i * m + c] = j; c++; if (c == j) break; } }",
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.3f) { z[i * m + c] = j; c += 2; if (c == 3) break; } }",
        "for (int j = 0; j < m; j++) { if (c == 1) w[i] = j; if (x[i * m + j] > 0.3f) { z[i * m + c] = j; c++; } }",
        # a limit that moves with the count
        "for (int j = 0; j < m; j++) { if (x[i * m + j] > 0.f) { z[i * m + c] = j; c++; if (c > 2 * c - 4) break; } }",
        "float s = 0.f; for (int j = 0; j < m; j++) { s += x[i * m + j]; z[i * m + j] = s; if (s > 0.3f) break; }",
    ],
)
def test_no_move_where_order_or_effects_would_differ(loop: str, subject_from) -> None:
    subject = subject_from(kernel(f"{GUARD} int c = 0; {loop} y[i] = c;"))
    assert [m.name for m in ShareLoop().moves(subject)] == []
