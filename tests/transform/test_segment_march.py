"""segment-march: what a march hands on is filled anew before each segment; no move where a turn needs all before it."""

from __future__ import annotations

import pytest

from fsr.transform.march.action import SegmentMarch

SIZES = [{"n": n, "cols": c} for n, c in [(1, 1), (3, 70), (7, 64), (40, 5), (131, 66)]]


def kernel(body: str, *, before: str = "", grid: str = '"ceil_div(cols, 64)"', block: str = "64") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 256, timed = 200}}
// cols = {{min = 1, max = 256, timed = 256}}
// [args]
// u = {{role = "in", shape = ["n + 8", "cols"]}}
// v = {{role = "inout", shape = ["n + 8", "cols"]}}
// w = {{role = "inout", shape = ["cols"]}}
// n = {{value = "n"}}
// cols = {{value = "cols"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
{before}
__global__ void k(const float *u, float *v, float *w, int n, int cols)
{{
{body}
}}
"""


GUARD = "const int c = blockIdx.x * blockDim.x + threadIdx.x; if (c >= cols) return;"
TAPS = f"""
    {GUARD}
    float a = u[c], b = u[cols + c], d = u[2 * cols + c];
    for (int t = 0; t < n; ++t) {{
        float e = u[(t + 3) * cols + c];
        v[t * cols + c] = 0.3f * a + 0.7f * b - 0.11f * d + 1.7f * e;
        a = b; b = d; d = e;
    }}
"""
FLUXES = """
    int t, c; float old, now, left, right, mid;
    c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols && c != 3) {
        old = 0.0f;
        left = u[c] * u[c]; mid = u[cols + c] * u[cols + c];
        for (t = 1; t < n + 2; t++) {
            right = u[(t + 1) * cols + c] * u[(t + 1) * cols + c];
            now = flux(left, mid, right);
            v[t * cols + c] += (now - old) / 3.0f;
            old = now;
            left = mid; mid = right;
        }
    }
"""
ARRAY = f"""
    {GUARD}
    float window[W];
    for (int q = 0; q < W - 1; q++) window[q] = u[q * cols + c];
    int in = (W - 1) * cols + c, out = c;
    for (int t = 0; t < n; t += 1) {{
        window[W - 1] = u[in];
        float s = 0.0f;
        #pragma unroll
        for (int q = 0; q < W; q++) s += window[q] * (q + 0.3f);
        v[out] = s;
        #pragma unroll
        for (int q = 0; q + 1 < W; q++) window[q] = window[q + 1];
        in += cols;
        out = out + cols;
    }}
    w[c] = window[0] + window[1];
"""
POINTERS = f"""
    {GUARD}
    const float *from = u + c;
    float *to = v + c;
    float before = *from, x = 0.1f;
    int left = 0;
    w[c] = 2.0f;
    while (left < n) {{
        from += cols;
        x = *from;
        *to = x - before;
        to += cols;
        before = x;
        left++;
    }}
"""
DOWN = f"""
    {GUARD}
    float2 pair; pair.x = pair.y = 0.0f;
    for (int t = n + 1; t >= 2; t -= 2) {{
        if (u[t * cols + c] < -100.0f) continue;
        float x = u[t * cols + c];
        v[t * cols + c] = x + 0.3f * pair.x + 0.7f * pair.y;
        pair.x = pair.y;
        pair.y = t < 9 ? x : sqrtf(fabsf(x));
    }}
""".replace("if (u[t * cols + c] < -100.0f) continue;", "")
PLANES = """
    __shared__ float line[66];
    const int x = threadIdx.x, c = min((int)(blockIdx.x * 64 + x), cols - 1);
    const bool inside = blockIdx.x * 64 + x < cols;
    float above = 0.0f, here = u[c];
    for (int t = 0; t < n; ++t) {
        const float below = u[(t + 1) * cols + c];
        __syncthreads();
        line[x + 1] = here;
        if (x == 0) line[0] = u[t * cols + max(c - 1, 0)];
        if (x == 63) line[65] = u[t * cols + min(c + 1, cols - 1)];
        __syncthreads();
        if (inside) v[t * cols + blockIdx.x * 64 + x] = above + below + line[x] * 0.3f + line[x + 2];
        above = here;
        here = below;
    }
"""
PAIRS = f"""
    {GUARD}
    float a = u[c], b = u[cols + c];
    for (int t = 0; t < n; t += 2) {{
        float d = u[(t + 2) * cols + c];
        v[t * cols + c] = (a + b + d) / 3.0f;
        a = u[(t + 3) * cols + c];
        v[(t + 1) * cols + c] = (b + d + a) / 3.0f;
        b = a;
        a = d;
    }}
"""
RECORD = f"""
    {GUARD}
    Last last;
    last.one = u[c];
    last.two = 0.0f;
    float ring[W];
    for (int q = 0; q < W; q++) ring[q] = q;
    for (int t = 0; t < n; ++t) {{
        const float x = u[t * cols + c];
        ring[(t + 1) % W] = x * x;
        float s = last.one + last.two * 0.3f;
        for (int q = 0; q < W; q++) s += ring[q] / 7.0f;
        v[t * cols + c] = s;
        last.two = last.one;
        last.one = x;
    }}
"""
RECORDS = "#define W 3\nstruct Last { float one, two; };"
FLUX = "__device__ float flux(float a, float b, float c) { return a * 0.3f + b / (1.0f + c * c); }"
ALL_AXES = TAPS.replace("if (c >=", "if (blockIdx.y != gridDim.y - 1 || blockIdx.z + 1 == gridDim.z || c >=")
STYLES = {
    "taps": kernel(TAPS),
    "fluxes": kernel(FLUXES, before=FLUX),
    "array": kernel(ARRAY, before="#define W 5"),
    "pairs": kernel(PAIRS),
    "record and ring": kernel(RECORD, before=RECORDS),
    "pointers": kernel(POINTERS),
    "down": kernel(DOWN),
    "planes": kernel(PLANES),
    "all axes": kernel(ALL_AXES, grid='["ceil_div(cols, 64)", "n // n + 1", "2"]'),
}  # fmt: skip


@pytest.mark.parametrize("style", sorted(STYLES))
def test_segments_give_every_bit_of_the_march(style: str, subject_from, runner) -> None:
    subject, action = subject_from(STYLES[style]), SegmentMarch()
    moves = list(action.moves(subject))
    assert len(moves) >= 2
    for move in moves[:2]:
        runner.check(subject, action.apply(subject, move), *SIZES)


def test_stores_beside_the_loop_are_done_once(subject_from, runner) -> None:
    text = STYLES["fluxes"].replace("        old = 0.0f;", "        old = 0.0f; w[c] = 1.5f;")
    end = text.rindex("}", 0, text.rindex("}"))
    text = text[:end] + "} else if (c < cols) w[c] = -1.0f;" + text[end + 1 :]
    subject, action = subject_from(text), SegmentMarch()
    changed = action.apply(subject, next(action.moves(subject)))
    runner.check(subject, changed, *SIZES)
    assert changed.source.count("if (segment == 0u)") == 2
    assert runner.faults(changed, subject.contract, SIZES[1]) == []
    both = text[:end] + "w[c] = mid; " + text[end:]  # the last segment does not wait for the first one
    assert list(action.moves(subject_from(both))) == []


def test_what_is_dear_and_handed_on_once_is_done_in_the_last_turn_before_alone(subject_from) -> None:
    subject, action = subject_from(STYLES["fluxes"]), SegmentMarch()
    changed = action.apply(subject, next(action.moves(subject)))
    assert changed.source.count("= flux(") == 2
    assert changed.source.count("v[t * cols + c] +=") == 1


NAMED_BEFORE = f"""
    {GUARD}
    int at = c, next;
    float a = u[c], b = u[cols + c];
    for (int t = 0; t < n; ++t) {{
        next = at + slice;
        float d = u[next + slice];
        v[at] = 0.3f * a + 0.7f * b - 0.11f * d;
        a = b; b = d;
        at = next;
    }}
"""


def _sliced(body: str) -> str:
    said = '// slice = {value = "cols"}\n// [launch]'
    return kernel(body, before="__constant__ int slice;").replace("// [launch]", said)


def test_a_place_that_is_named_before_it_is_taken(subject_from, runner) -> None:
    """The step of a turn by way of another variable; a slice that host code puts into constant memory."""
    subject, action = subject_from(_sliced(NAMED_BEFORE)), SegmentMarch()
    moves = list(action.moves(subject))
    assert moves
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("at = next;", "next++; at = next;"),
        ("at = next;", "if (t & 1) at = next;"),
        ("int at = c, next;", "int at = c; short next;"),
        ("next = at + slice;", "next = at + slice - slice;"),
    ],
)
def test_no_move_where_the_next_place_is_another(old: str, new: str, subject_from, runner) -> None:
    assert old in NAMED_BEFORE
    subject, action = subject_from(_sliced(NAMED_BEFORE.replace(old, new))), SegmentMarch()
    assert list(action.moves(subject)) == []


def test_planes_stay_in_step(subject_from, runner) -> None:
    subject, action = subject_from(STYLES["planes"]), SegmentMarch()
    changed = action.apply(subject, next(action.moves(subject)))
    assert runner.faults(changed, subject.contract, SIZES[2]) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = b;", "a = b + 0.5f * a;"),  # a filter with feedback
        ("a = b; b = d; d = e;", "a = b; b = d; d = a + e;"),  # round a longer way
        ("a = b;", "a += e;"),  # a running sum
        ("a = b;", "if (e > 0.0f) a = b;"),  # the last one of which data tells
        ("a = b;", "if (t + 3 < n) a = b;"),
        ("a = b;", "if (e < 0.0f) break; a = b;"),
        ("a = b;", "if (e < 0.0f) return; a = b;"),
        ("a = b;", "a = v[(t + 2) * cols + c];"),  # a later turn writes that
        ("a = b;", "a = v[t * cols + c];"),  # another segment has written that when lines are filled
        ("a = b;", "a = __ldg(v + t * cols + c);"),
        ("a = b;", "a = __ldg(&v[t * cols + c]);"),
        ("a = b;", "float *at = v + c; a = at[t * cols];"),
        ("a = b;", "atomicAdd(&w[0], e); a = b;"),
        ("a = b;", "a = __shfl_up_sync(0xffffffff, b, 1);"),
        ("a = b;", "w[c] = e; a = b;"),  # the last turn's stays
        ("a = b;", "w[c] = v[c]; a = b;"),
        ("t < n; ++t", "t < (int)v[c]; ++t"),
        ("t < n; ++t", "t < n - (int)a; ++t"),
        ("float e = ", "t += (int)a; float e = "),
        ("float a = u[c]", "float a = v[c]"),  # another segment may have written it
        ("float a = u[c]", "w[c] = 1.0f; float a = w[(c + 1) % cols]"),
        ("a = b;", "modff(e, &a); d = a; a = b * d;"),
        ("v[t * cols + c]", "v[t * cols / 2 + c]"),
        ("v[t * cols + c]", "v[(int)a]"),
    ],
)  # fmt: skip
def test_no_move_where_turns_need_all_before_them(old: str, new: str, subject_from) -> None:
    assert list(SegmentMarch().moves(subject_from(STYLES["taps"])))
    assert old in TAPS
    assert list(SegmentMarch().moves(subject_from(kernel(TAPS.replace(old, new))))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("line[x + 1] = here;", "line[x + 1] = here + 0.5f * line[x + 1];"),
        ("line[x + 1] = here;", "if (t % 2 == 0) line[x + 1] = here;"),  # what is left is older
        ("line[x + 1] = here;", "line[1 + (x + t) % 64] = here;"),
        ("line[x + 1] = here;", "float *at = line + (t & 1); at[x] = here;"),
        ("line[x + 1] = here;", "*(line + x + 1) = here;"),
        ("t < n; ++t", "t < n + c; ++t"),  # barriers that some threads do not come to
        ("v[t * cols + blockIdx.x * 64 + x] =", "v[t + blockIdx.x * 64 + x] ="),
        ("if (inside)", ""),
        ("here = below;", "here = line[x + 2]; above = below;"),
    ],
)  # fmt: skip
def test_no_move_where_planes_hand_on_more(old: str, new: str, subject_from) -> None:
    assert list(SegmentMarch().moves(subject_from(STYLES["planes"])))
    assert old in PLANES
    assert list(SegmentMarch().moves(subject_from(kernel(PLANES.replace(old, new))))) == []


@pytest.mark.parametrize("more", ["v[(t + 3) * cols + c] = d;", "v[(t + 2) * cols + c] = d;", "v[t + 5] = d;"])
def test_no_move_where_turns_meet_in_what_they_write(more: str, subject_from) -> None:
    text = kernel(PAIRS.replace("b = a;", f"b = a; {more}"))
    assert list(SegmentMarch().moves(subject_from(text))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("struct Last { float one, two; };", "union Last { float one; float two; };"),
        ("ring[(t + 1) % W] =", "ring[(t + 1) % 2] ="),  # the third one stays
        ("ring[(t + 1) % W] =", "ring[(3 * t + 1) % W] ="),
        ("ring[(t + 1) % W] =", "if (x > 0.0f) ring[(t + 1) % W] ="),
        ("ring[(t + 1) % W] =", "ring[0] = x; ring[(t + 1) % W] ="),
        ("ring[(t + 1) % W] = x", "ring[(t + 1) % W] = ring[t % W] + x"),
        ("last.one = x;", "last.one = x + last.two;"),
        ("last.one = x;", "last.one = x; if (x < 0.0f) last.two = x;"),
    ],
)
def test_no_move_of_rings_that_keep_more(old: str, new: str, subject_from) -> None:
    text = STYLES["record and ring"]
    assert old in text
    found = list(SegmentMarch().moves(subject_from(text.replace(old, new))))
    assert bool(found) == ("last.two = x;" in new)  # which is the turn's, or the one's before


def test_no_move_of_elements_at_carried_places(subject_from) -> None:
    ring = ARRAY.replace("window[W - 1] = u[in];", "at = at == W - 1 ? 0 : at + 1; window[at] = u[in];")
    assert list(SegmentMarch().moves(subject_from(kernel("int at = 0;" + ring, before="#define W 5")))) == []


def test_no_move_where_buffers_may_overlap(subject_from) -> None:
    text = STYLES["taps"].replace('// entry = "k"', '// entry = "k"\n// aliasing = [["u", "v"]]')
    assert list(SegmentMarch().moves(subject_from(text))) == []


def test_no_move_where_threads_fill_the_gpu(subject_from) -> None:
    many = kernel(TAPS.replace("blockIdx.x *", "(blockIdx.x % 4) *"), grid='"ceil_div(cols, 64) * 8192"')
    assert list(SegmentMarch().moves(subject_from(many))) == []


def test_no_move_where_the_launch_stays(subject_from) -> None:
    assert list(SegmentMarch().moves(subject_from(STYLES["taps"], keep_launch=True))) == []
