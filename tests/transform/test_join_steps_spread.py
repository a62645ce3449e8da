"""join-steps where a tile has fewer threads from one repetition to another: rounds of a tournament, sweeps of a scan,
levels of wavelets; in grids that shrink with them or not."""

from __future__ import annotations

import pytest

from fsr.contract.model import concrete_launches
from fsr.transform.launch.join_steps import JoinSteps

SIZES = [{"logn": n} for n in (1, 2, 5, 7, 9, 11)]


def kernel(body: str, *, args: str, params: str, grid: str = "ceil_div(2 ** logn // 2, 64)", dtype: str = "int32",
           shape: str = "2 ** logn", helpers: str = "") -> str:  # fmt: skip
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// logn = {{min = 1, max = 20, timed = 16}}
// [args]
// x = {{role = "inout", dtype = "{dtype}", shape = ["{shape}"], alignment = 8}}
// y = {{role = "inout", dtype = "{dtype}", shape = ["{shape}"], alignment = 8}}
// values = {{role = "in", dtype = "int32", shape = ["2 ** logn"]}}
// [[launch]]
// entry = "k"
// grid = "{grid}"
// block = 64
// repeat = "logn"
// args = [{args}]
// ///
{helpers}
__global__ void k({params})
{{
{body}
}}
"""


SHRINKING = "ceil_div(ceil_div(2 ** logn, 2 << step), 64)"
TOURNAMENT = kernel(
    """
    const unsigned pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const unsigned here = pair * 2u * stride, there = here + stride;
    if (there >= shape.total) return;
    const unsigned left = x[here] & 1, right = x[there] & 1;
    if (values[right] > values[left] || (values[right] == values[left] && length(right, &shape) > 4))
        x[here] = x[there];
""",
    args='"values", "x", "1 << step", "ceil_div(2 ** logn, 2 << step)", "shape"',
    params="const int *values, unsigned int *x, unsigned stride, unsigned pairs, Shape shape",
    grid=SHRINKING,
    dtype="uint32",
    helpers="""struct Shape { unsigned taps[2], total; };
__device__ static unsigned long long length(unsigned at, const Shape *shape) { return at * 3ull * shape->taps[at]; }""",
).replace("// [[launch]]", '// shape.taps = {value = 2}\n// shape.total = {value = "2 ** logn"}\n// [[launch]]')
UPSWEEP = kernel(
    """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n / (2 * offset)) {
        int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
        x[b] += x[a];
    }
""",
    args='"x", "2 ** logn", "1 << step"',
    params="int *x, int n, int offset",
)
DOWNSWEEP = kernel(
    """
    unsigned long long t = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (t >= (1ull << level)) return;
    unsigned long long offset = n >> (level + 1), a = offset * (2 * t + 1) - 1, b = a + offset;
    long long kept = x[a];
    x[a] = x[b];
    x[b] += kept;
""",
    args='"x", "2 ** logn", "step", "2 ** logn >> (step + 1)"',
    params="long long *x, unsigned long long n, int level, int unused",
    dtype="int64",
).replace("n >> (level + 1)", "unused")
HAAR = kernel(
    """
    int t = blockIdx.x * blockDim.x + threadIdx.x, h = 1 << level;
    if (t >= count) return;
    float2 *low = re + 2 * t * h, *high = low + h, a = *low, b = *high;
    *low = make_float2(a.x + b.x, a.y + b.y);
    *high = make_float2(a.x - b.x, a.y - b.y);
    im[2 * t * h].x += a.x;
""",
    args='"x", "y", "2 ** logn >> (step + 1)", "step"',
    params="float2 *re, float2 *im, int count, int level",
    grid="ceil_div(2 ** logn >> (step + 1), 64)",
    dtype="float32",
    shape="2 * 2 ** logn",
)
INVERSE = kernel(
    """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / (2 * h) || t >= gridDim.x * 64) return;
    int i = 2 * h * t;
    double a = x[i], b = x[i + h];
    x[i] = a + b;
    x[i + h] = a - b;
""",
    args='"x", "2 ** logn", "2 ** logn >> (step + 1)"',
    params="double *x, int n, int h",
    grid="ceil_div(1 << step, 64)",
    dtype="float64",
)
STYLES = {
    "tournament": TOURNAMENT, "upsweep": UPSWEEP, "downsweep": DOWNSWEEP, "haar": HAAR, "inverse": INVERSE,
}  # fmt: skip


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_all_rounds_are_done_in_their_order(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), JoinSteps()
    moves = list(action.moves(subject))
    assert moves
    for move in moves[:: max(len(moves) // 2, 1)]:
        runner.check(subject, action.apply(subject, move), *SIZES)


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_rounds_within_a_tile_are_one_launch(text: str, subject_from) -> None:
    subject, action = subject_from(text), JoinSteps()
    for move in action.moves(subject):
        plan, inside = action.apply(subject, move).plan, (128 * int(move.param("blocks"))).bit_length() - 1
        for logn in (3, 7, 12, 16):
            made = concrete_launches(plan, subject.contract, {"logn": logn}, {})
            assert len(made) == 1 + max(logn - inside, 0)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (TOURNAMENT, "there = here + stride", "there = here + 2u * stride"),
        (TOURNAMENT, "pair * 2u * stride", "pair * 3u * stride"),
        (TOURNAMENT, "x[here] = x[there]", "x[right] = x[there]"),
        (TOURNAMENT, '"1 << step"', '"1 + 2 * step"'),
        (TOURNAMENT, "= pair * 2u * stride", "= (pairs - 1u - pair) * 2u * stride"),
        (UPSWEEP, "x[b] += x[a]", "x[b] += x[a > 0 ? a - 1 : 0]"),
        (UPSWEEP, "offset * (2 * t + 1) - 1", "offset * (2 * t + 3) - 1"),
        (DOWNSWEEP, "b = a + offset", "b = a + 2 * offset"),
        (HAAR, "im[2 * t * h]", "im[t]"),
        (INVERSE, "int i = 2 * h * t", "int i = h * t"),
        (INVERSE, 'grid = "ceil_div(1 << step, 64)"', 'grid = ["ceil_div(1 << step, 64)", "1 + step"]'),
    ],
)
def test_nothing_is_offered_where_a_tile_is_not_alone(text: str, old: str, new: str, subject_from) -> None:
    assert old in text
    assert not list(JoinSteps().moves(subject_from(text.replace(old, new))))
