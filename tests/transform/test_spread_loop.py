"""spread-loop: every turn runs once, with the ids that its thread had; no move where turns depend on one another."""

from __future__ import annotations

import pytest

from fsr.transform.launch.spread_loop import NESTS, ORDERS, SpreadLoop

SIZES = [{"images": b, "steps": t, "channels": c} for b, t, c in [(1, 1, 1), (3, 8, 33), (2, 9, 100), (5, 40, 64)]]


def kernel(body: str, *, grid: str = '"images"', block: str = '"channels"') -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// images = {{min = 1, max = 64, timed = 8}}
// steps = {{min = 1, max = 256, timed = 64}}
// channels = {{min = 1, max = 256, timed = 256}}
// [args]
// u = {{role = "in", shape = ["images", "steps", "channels"]}}
// v = {{role = "inout", shape = ["images", "steps", "channels"]}}
// T = {{value = "steps"}}
// C = {{value = "channels"}}
// B = {{value = "images"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
__global__ void k(const float *u, float *v, int T, int C, int B)
{{
{body}
}}
"""


WALK = """
    const int b = blockIdx.x, c = threadIdx.x;
    if (c == 7) return;
    for (int t = 0; t < T; ++t) {
        int at = (b * T + t) * C + c;
        if (u[at] < 0.25f) continue;
        v[at] = v[at] * 0.5f + u[at] + blockDim.x + gridDim.x + blockIdx.y + gridDim.y;
    }
"""
FROM_ONE = """
    const int b = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < B && c < C) {
        float scale[2] = {0.5f, 2.0f};
        for (int t = 1; t <= T - 1; t++) {
            float s = 0.0f;
            for (int n = 0; n < 3; n++) s += u[(b * T + t) * C + c] * scale[n & 1];
            v[(b * T + t) * C + c] = s;
        }
    }
"""
FLAT = {"grid": '["ceil_div(channels, 32)", "ceil_div(images, 4)"]', "block": "[32, 4]"}


OLD_HABITS = """
    int t = 0, n = 0, place = 0;
    float most, scale;
    const int b = blockIdx.x, c = threadIdx.x;
    for (t = 0; t < T; ++t) {
        most = Limits<float>::least();
        for (n = 0; n < 3; n++) {
            scale = n + 1.0f;
            if (u[(b * T + t) * C + (c + n) % C] * scale > most) {
                most = u[(b * T + t) * C + (c + n) % C] * scale;
                place = n;
            }
        }
        v[(b * T + t) * C + c] = most + place;
    }
"""
LIMITS = """
template <typename T> struct Limits {};
template <> struct Limits<float> { static __device__ float least() { return -3.402823466e+38F; } };
template <> struct Limits<double> { static __device__ double least() { return -1e300; } };
__global__ void k("""
OF_OLD = kernel(OLD_HABITS).replace("__global__ void k(", LIMITS)


@pytest.mark.parametrize(
    "text", [kernel(WALK), kernel(FROM_ONE, **FLAT), OF_OLD], ids=["a row a thread", "two dimensions", "old habits"]
)
def test_every_turn_runs_once_with_the_ids_of_before(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), SpreadLoop()
    moves = list(action.moves(subject))
    assert {move.param("order") for move in moves} == set(ORDERS)
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.plan.launches[0].block == (str(move.param("threads")), "1", "1")
        runner.check(subject, changed, *SIZES)


def test_few_threads_promise_more_than_many(subject_from) -> None:
    few = max(m.gain for m in SpreadLoop().moves(subject_from(kernel(WALK))))
    many = kernel(WALK.replace("blockIdx.x, c", "blockIdx.x % B, c"), grid='"images * 4096"')
    assert few > 3
    assert max((m.gain for m in SpreadLoop().moves(subject_from(many))), default=1.0) < few


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (u[at] < 0.25f) continue;", "if (u[at] < 0.25f) break;"),
        ("if (u[at] < 0.25f) continue;", "if (u[at] < 0.25f) return;"),
        ("if (u[at] < 0.25f) continue;", "__syncthreads();"),
        ("v[at] = v[at]", "v[at] = v[(b * T + max(t - 1, 0)) * C + c]"),  # the turn before
        ("v[at] = v[at]", "v[b * T * C + c] = v[at]"),  # all turns write one element
        ("++t", "t += 2"),
        ("t < T; ++t", "t < (int)u[0]; ++t"),
        ("if (c == 7) return;", "if (c == 7) return; v[b * T * C + c] = 1.0f;"),
        ("if (c == 7) return;", "__shared__ float s; s = 0.0f;"),
        ("if (c == 7) return;", "for (int n = 0; n < 2; n++)"),  # an outer loop
        ("if (c == 7) return;", "float s = 0.0f; for (int n = 0; n < C; n++) s += u[n];"),  # all threads would add up
    ],
)  # fmt: skip
def test_no_move_where_turns_or_threads_depend_on_one_another(old: str, new: str, subject_from) -> None:
    assert old in WALK
    assert list(SpreadLoop().moves(subject_from(kernel(WALK.replace(old, new))))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("most = Limits<float>::least();", "if (t == 0) most = 0.0f;"),  # a running maximum
        ("place = n;", "place += n;"),
        ("place = n;", "} if (u[b * C + t] > 0.0f) { place = t;"),  # the last turn of which something holds
        ("        v[", "        if (place > 1) most = 0.0f; scale = v["),  # nothing is written, and the place is read
    ],
)
def test_no_move_where_a_turn_finds_what_another_left(old: str, new: str, subject_from) -> None:
    assert old in OLD_HABITS
    text = OF_OLD.replace(OLD_HABITS, OLD_HABITS.replace(old, new) + ("v[c] = place;" if "scale = v" in new else ""))
    assert list(SpreadLoop().moves(subject_from(text))) == []


def test_no_move_where_the_launch_stays(subject_from) -> None:
    assert list(SpreadLoop().moves(subject_from(kernel(WALK), keep_launch=True))) == []


AT = "#define AT(b, t, c) (((b) * T + (t)) * C + (c))\n__global__ void k("
PLANES = """
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= B) return;
    int n, c, t, place;
    float most;
    for (c = 0; c < C; c++) {
        for (t = 0; t < T; t++) {
            most = -1e30f;
            for (n = 0; n < 3; n++) {
                if (u[AT(b, t, c)] * (n - 1) > most) {
                    most = u[AT(b, t, c)] * (n - 1);
                    place = n;
                }
            }
            v[AT(b, t, c)] = most + place;
        }
    }
"""
A_PLANE_EACH = {"grid": '"ceil_div(images, 32)"', "block": "32"}


def planes(text: str = PLANES) -> str:
    return kernel(text, **A_PLANE_EACH).replace("__global__ void k(", AT)


def _nests(moves) -> set[str]:
    return {str(dict(m.params).get("nest", "")) for m in moves}


def test_turns_of_two_loops_are_digits_of_a_place(subject_from, runner) -> None:
    """A pooled plane a thread, its places behind a macro, variables at the head, the innermost loop the outer one."""
    subject, action = subject_from(planes()), SpreadLoop()
    moves = list(action.moves(subject))
    assert _nests(moves) == {"", *NESTS}
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v[AT(b, t, c)] =", "v[AT(b, t, c) + t] ="),
        ("v[AT(b, t, c)] =", "v[b * T * C + t * (C - 1) + c] ="),
        ("c < C; c++", "c <= C - (t = 0); c++"),
        ("(b) * T + (t)) * C", "(b) * T + (t)) * (C / 2)"),
    ],
)
def test_no_move_where_places_of_two_turns_meet(old: str, new: str, subject_from) -> None:
    assert old in planes()
    assert list(SpreadLoop().moves(subject_from(planes().replace(old, new)))) == []


def test_a_loop_in_it_whose_turns_go_on_stays_whole(subject_from, runner) -> None:
    """A running sum down a column: columns are spread, what is in them is not."""
    text = PLANES.replace("for (t = 0;", "most = 0.0f; for (t = 0;").replace("most = -1e30f;", "")
    text = text.replace("> most) {", "> 0.0f) {").replace("most = u[", "most += u[")
    text = text.replace("int n, c, t, place;", "int n, c, t, place = 0;").replace("most + place", "most")
    subject, action = subject_from(planes(text)), SpreadLoop()
    moves = list(action.moves(subject))
    assert _nests(moves) == {""}
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)
