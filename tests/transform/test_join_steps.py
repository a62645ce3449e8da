"""join-steps: repetitions that keep to a tile are one launch, all others stay as they were; no move where a block
needs what another wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.contract.model import concrete_launches
from fsr.transform.launch import joined_steps
from fsr.transform.launch.join_steps import JoinSteps

SIZES = [{"logn": n} for n in (1, 2, 5, 7, 9)]


def kernel(body: str, *, args: str, repeat: str, grid: str = "ceil_div(2 ** logn, 64)", block: str = "64",
           params: str = "float *x, int n") -> str:  # fmt: skip
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// logn = {{min = 1, max = 20, timed = 16}}
// [args]
// x = {{role = "inout", dtype = "float32", shape = ["2 ** logn"]}}
// y = {{role = "inout", dtype = "float32", shape = ["2 ** logn"]}}
// order = {{role = "in", shape = ["2 ** logn"], dtype = "int32", low = 0, high = "2 ** logn - 1"}}
// [[launch]]
// entry = "k"
// grid = "{grid}"
// block = {block}
// repeat = "{repeat}"
// args = [{args}]
// ///
__global__ void k({params})
{{
{body}
}}
"""


PHASE = "(isqrt(8 * step + 1) - 1) // 2"
SORT = kernel(
    """
    unsigned int i, partner;
    i = threadIdx.x + blockDim.x * blockIdx.x;
    partner = i ^ j;
    if (partner > i && partner < n) {
        if (((i & up) == 0) == (x[i] > x[partner])) {
            float kept = x[i];
            x[i] = x[partner];
            x[partner] = kept;
        }
    }
""",
    args=f'"x", "2 ** logn", "1 << ({PHASE} - (step - {PHASE} * ({PHASE} + 1) // 2))", "2 << ({PHASE})"',
    repeat="logn * (logn + 1) // 2",
    params="float *x, int n, int j, int up",
)
MERGE = kernel(
    """
    int i = threadIdx.x + blockDim.x * blockIdx.x, o = i & (2 * p - 1), m = i + q;
    if (q == p ? (i & p) == 0 : (((o / q) & 1) == 1 && o + q < 2 * p))
        if (m < n && x[i] > x[m]) {
            float kept = x[i];
            x[i] = x[m];
            x[m] = kept;
        }
""",
    args=f'"x", "2 ** logn", "1 << ({PHASE} - (step - {PHASE} * ({PHASE} + 1) // 2))", "1 << ({PHASE})"',
    repeat="logn * (logn + 1) // 2",
    params="float *x, int n, int q, int p",
)
BUTTERFLY = kernel(
    """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int at = t / half * 2 * half + t % half;
    float a = x[at], b = x[at + half];
    x[at] = a + b;
    x[at + half] = a - b;
    y[at] += 1.0f;
""",
    args='"x", "y", "2 ** logn", "1 << step"',
    repeat="logn",
    grid="ceil_div(2 ** logn // 2, 64)",
    params="float *x, float *y, int n, int half",
)
POINTS = kernel(
    """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 0.5f + y[order[i]];
""",
    args='"x", "y", "order", "2 ** logn"',
    repeat="5",
    params="float *x, float *y, const int *order, int n",
)
TIMES = kernel(
    """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = (float)turn - x[i];
""",
    args='"x", "2 ** logn", "3 * step + logn"',
    repeat="7",
    params="float *x, int n, int turn",
)


@pytest.mark.parametrize(
    "text", [SORT, MERGE, BUTTERFLY, POINTS, TIMES], ids=["sort", "merge", "butterfly", "points", "numbered"]
)
def test_all_steps_are_done_in_their_order(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), JoinSteps()
    moves = list(action.moves(subject))
    assert moves
    for move in moves[:: max(len(moves) // 3, 1)]:
        runner.check(subject, action.apply(subject, move), *SIZES)


def test_steps_within_a_tile_are_one_launch(subject_from) -> None:
    subject, action = subject_from(SORT), JoinSteps()
    for move in action.moves(subject):
        plan = action.apply(subject, move).plan
        reach = 64 * int(move.param("blocks"))
        for logn in (4, 7, 12, 16):
            made = concrete_launches(plan, subject.contract, {"logn": logn}, {})
            spans = [1 << (phase - q) for phase in range(logn) for q in range(phase + 1)]
            inside = [span < reach for span in spans]
            starts = sum(not (here and before) for here, before in zip(inside, [False, *inside], strict=False))
            assert len(made) == starts


def test_tiles_that_leave_multiprocessors_idle_promise_less(subject_from) -> None:
    gains = {m.param("blocks"): m.gain for m in JoinSteps().moves(subject_from(SORT)) if m.param("threads") == 256}
    assert gains[4] > gains[16]


def test_numbers_that_are_no_index_may_be_broken(subject_from) -> None:
    text = POINTS.replace("x[i] * 0.5f", "x[i] * share").replace("int n", "float share, int n")
    told = text.replace('"order", ', '"order", 0.75, ')
    assert list(JoinSteps().moves(subject_from(told)))


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (POINTS, "y[order[i]]", "x[order[i]]"),  # what another block writes
        (POINTS, "x[i] * 0.5f", "x[i > 0 ? i - 1 : 0] * 0.5f"),
        (POINTS, "x[i] = ", "x[order[i]] = "),
        (POINTS, "if (i < n)", "__syncthreads(); if (i < n)"),
        (POINTS, "if (i < n)", "atomicAdd(&x[i], 1.0f); if (i < n)"),
        (POINTS, "if (i < n) x[i] =", "float *p = x + 1; if (i < n - 1) p[i] ="),
        (POINTS, "block = 64", 'block = "min(64, logn)"'),
        (POINTS, "block = 64", "block = [32, 2]"),
        (POINTS, '"x", "y"', '"x", "x"'),
        (POINTS, 'repeat = "5"', 'repeat = "1"'),
        (SORT, "i ^ j", "n - 1 - i"),
    ],
)
def test_nothing_is_offered_where_a_block_is_not_alone(text: str, old: str, new: str, subject_from) -> None:
    assert old in text
    assert not list(JoinSteps().moves(subject_from(text.replace(old, new))))


def test_other_candidates_of_the_same_kernel_are_not_gone_through_anew(subject_from, monkeypatch) -> None:
    """Flags, say, are another candidate, and going through all repetitions may take seconds."""
    asked: list[tuple[str, ...]] = []
    whole = joined_steps.Steps.gone_through
    monkeypatch.setattr(joined_steps.Steps, "gone_through", lambda s, d, **how: asked.append(d) or whole(s, d, **how))
    joined_steps._turns.cache_clear()
    subject = subject_from(SORT)
    first = [m.name for m in JoinSteps().moves(subject)]
    assert first
    assert asked
    count, candidate = len(asked), subject.candidate
    flagged = replace(candidate, plan=replace(candidate.plan, flags=("--use_fast_math",)))
    assert [m.name for m in JoinSteps().moves(replace(subject, candidate=flagged))] == first
    assert len(asked) == count
    changed = replace(candidate, source=candidate.source + "\n__device__ int one() { return 1; }\n")
    assert [m.name for m in JoinSteps().moves(replace(subject, candidate=changed))] == first
    assert len(asked) > count


def test_steps_that_leave_most_blocks_alone_are_not_taken_to_keep_to_tiles(subject_from) -> None:
    """Of a merge in steps of many tiles, those tiles have pairs that begin where parts of all do."""
    subject, action = subject_from(MERGE), JoinSteps()
    for move in action.moves(subject):
        plan, tile = action.apply(subject, move).plan, 64 * int(move.param("blocks"))
        inside = sum(2 << phase <= tile for phase in range(16))
        made = concrete_launches(plan, subject.contract, {"logn": 16}, {})
        assert len(made) == 1 + sum(phase + 1 for phase in range(inside, 16))
