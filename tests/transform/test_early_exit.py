"""early-exit: loops that only find something out end when they know, and give the same; others are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.details.early_exit import EarlyExit

ACTION = EarlyExit()
SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (33, 4), (200, 9)]]


def kernel(work: str, more: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// m = {{min = 1, max = 64, timed = 16}}
// [args]
// text = {{role = "in", shape = ["n + m"], low = 0, high = 2}}
// word = {{role = "in", shape = ["m"], low = 0, high = 1}}
// out = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
{more}
__global__ void k(const signed char *text, const int *word, int *out, int n, int m)
{{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    {work}
}}
"""


FOUND_OUT = {
    "a mismatch": "int same = 1; for (int i = 0; i < m; i++) if (text[p + i] != word[i]) { same = 0; } out[p] = same;",
    "a match": "bool any = false; for (int i = 0; i < m; i++) if (text[p + i] == word[i]) any = true; out[p] = any;",
    "an and": "int all = 1; for (int i = 0; i < m; ++i) all &= text[p + i] >= word[i]; out[p] = all;",
    "in two loops": """int hit = 0;
        for (int i = 0; i < m; i++) { int w = word[i]; for (int j = 0; j <= i; j++) { if (text[p + j] > w) hit = -3; } }
        out[p] = hit;""",
    "on two ways": """int bad = 0; for (int i = 0; i < m; i++) {
        if (text[p + i] == 2) bad = 1; else if (max(word[i], 0) > text[p + i]) { bad = 1; } } out[p] = bad;""",
    "known before": "int ok = text[p] > 0; for (int i = 0; i < m; i++) ok &= word[i] < 2; out[p] = ok;",
}
OTHERS = {
    "a place": "int at = -1; for (int i = 0; i < m; i++) if (text[p + i] == word[i]) at = i; out[p] = at;",
    "a count": "int c = 0; for (int i = 0; i < m; i++) if (text[p + i] == word[i]) c += 1; out[p] = c;",
    "two values": "int f = 0; for (int i = 0; i < m; i++) if (text[p + i] == word[i]) f = 1; else f = 2; out[p] = f;",
    "ended": "int f = 0; for (int i = 0; i < m; i++) if (text[p + i] == word[i]) { f = 1; break; } out[p] = f;",
    "writes": "int f = 0; for (int i = 0; i < m; i++) { if (text[p + i] == word[i]) f = 1; out[p] = i + f; }",
    "the counter lives on": "int f = 0, i; for (i = 0; i < m; i++) if (text[p + i] == word[i]) f = 1; out[p] = f + i;",
    "two variables": """int f = 0, g = 0; for (int i = 0; i < m; i++) { if (text[p + i] == word[i]) f = 1; g += 2; }
        out[p] = f + g;""",
    "shared": """__shared__ int f; f = 0; __syncthreads();
        for (int i = 0; i < m; i++) if (text[p + i] == word[i]) f = 1;
        __syncthreads(); out[p] = f;""",
}


def ended(subject, runner) -> str:
    """The text of the one move's candidate, which does the same and has no further move."""
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    runner.check(subject, changed, *SIZES)
    again = replace(subject, candidate=changed, kernels=parse_kernels(changed.source))
    assert not list(ACTION.moves(again))
    return changed.source


@pytest.mark.parametrize("work", FOUND_OUT.values(), ids=FOUND_OUT)
def test_what_is_known_is_not_looked_for_any_longer(work: str, subject_from, runner) -> None:
    assert "break;" in ended(subject_from(kernel(work)), runner)


@pytest.mark.parametrize("work", OTHERS.values(), ids=OTHERS)
def test_loops_that_do_more_go_on(work: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(work))))


def test_a_function_that_does_more_than_compute_is_called_every_time(subject_from) -> None:
    work = "int f = 0; for (int i = 0; i < m; i++) if (told(out, p, i) == word[i]) f = 1; out[p] = f;"
    writes = "__device__ int told(int *out, int p, int i) { out[p] = i; return i; }"
    assert not list(ACTION.moves(subject_from(kernel(work, writes))))
    computes = "__device__ int told(int p, int i) { return p > i; }"
    assert list(ACTION.moves(subject_from(kernel(work.replace("told(out, ", "told("), computes))))


RUN_OUT = {
    "room": """int f = 0, s = 0;
        for (int i = 0; i < m; i++) if (f < 2 && text[p + i] != word[i]) { s += i * (f + 1); f++; }
        out[p] = s * 10 + f;""",
    "what is left": """int left = m / 2 + 1, s = 0;
        for (int i = 0; i < m; i++) {
          const int want = text[p + i] + word[i];
          if (want > 0 && left > 0 && left + 1 >= want - i) {
            int took = want < left ? want : left; s += took * i; left -= took;
          }
        }
        out[p] = s * 10 + left;""",
    "what one thread hands out": """__shared__ int left, sent[64]; sent[threadIdx.x] = 0; __syncthreads();
        if (threadIdx.x == 0) {
          left = m;
          for (int v = 0; v < 64; v++) if (left > 0 && v < n && text[v] > 0) { sent[v] = text[v]; left -= text[v]; }
        }
        __syncthreads(); out[p] = sent[threadIdx.x] * 100 + left;""",
}
GOES_ON = {
    "more than the branch": RUN_OUT["room"].replace("if (f", "{ s += i; if (f").replace("f++; }", "f++; } }"),
    "a test of the turn": RUN_OUT["room"].replace("f < 2", "f < i"),
    "a test of an element": RUN_OUT["room"].replace("f < 2", "word[f % m] > 0"),
    "what is otherwise": RUN_OUT["room"].replace("f++; }", "f++; } else f -= 1;"),
    "what nothing changes": RUN_OUT["room"].replace("f++;", ""),
    "what others change too": RUN_OUT["what one thread hands out"].replace("threadIdx.x == 0", "threadIdx.x < 2"),
    "a call that counts": RUN_OUT["room"].replace(
        "f < 2 && text[p + i]", "f < 2 && text[p + atomicAdd(out + p, 1) % m]"
    ),
}


@pytest.mark.parametrize("work", RUN_OUT.values(), ids=RUN_OUT)
def test_loops_end_with_what_runs_out(work: str, subject_from, runner) -> None:
    work = work if "__shared__" not in work else work.replace("return;", "")
    text = kernel(work).replace("if (p >= n) return;", "") if "__shared__" in work else kernel(work)
    text = text.replace("out[p] = sent", "if (p < n) out[p] = sent")
    assert ended(subject_from(text), runner).count("break;") == 1


@pytest.mark.parametrize("work", GOES_ON.values(), ids=GOES_ON)
def test_others_go_on(work: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(work))))
