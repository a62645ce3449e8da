"""rows-abreast: several neighbouring rows a block, whose elements lie side by side; no move where they do not, or where
threads might wait for others in vain."""

from __future__ import annotations

import pytest

from fsr.transform.rows.abreast import RowsAbreast

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (3, 300), (65, 40), (130, 257), (32, 64)]]


def kernel(body: str, *, grid: str = '"m"', x: str = '"n", "m"') -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 2048}}
// m = {{min = 1, max = 4096, timed = 1024}}
// [args]
// y = {{role = "inout", dtype = "float32", shape = ["m"], low = -9, high = 9}}
// x = {{role = "in", dtype = "float32", shape = [{x}], low = -9, high = 9}}
// c = {{role = "in", dtype = "int32", shape = ["m"], low = 0, high = "n"}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = {grid}
// block = 128
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(float *y, const float *x, const int *c, int n, int m)
{{
{body}
}}
"""


TREE = """
    __shared__ float part[128];
    const int col = blockIdx.x, t = threadIdx.x;
    float sum = 0.0f;
    for (int r = t; r < n; r += 128) sum += x[r * m + col] * 0.5f;
    part[t] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) y[col] += part[0];
"""
THREAD = """
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= m) return;
    float sum = 0.0f, most = -1e30f;
    for (int r = 0; r < n; r++) { sum += x[r * m + col]; most = fmaxf(most, x[r * m + col]); }
    float mean = sum / n, var = 0.0f;
    for (int r = 0; r < n; r++) { float d = x[r * m + col] - mean; var += d * d; }
    y[col] = var / n + most;
"""
FOLD = "for (int r = 0; r < n; r++) sum += x[r * m + col];"


@pytest.mark.parametrize("body", [TREE, THREAD], ids=["a block a column", "a thread a column"])
@pytest.mark.parametrize("way", ["rows=32,lanes=8", "rows=8,lanes=32"])
def test_every_way_computes_the_same(subject_from, close_outputs, body: str, way: str) -> None:
    subject = subject_from(kernel(body, grid='"m"' if body is TREE else '"ceil_div(m, 128)"'))
    action = RowsAbreast()
    move = next(m for m in action.moves(subject) if way in m.name)
    made = action.apply(subject, move)
    many, lanes = (int(part.split("=")[1]) for part in way.split(","))
    assert made.plan.launches[0].block[0] == str(many * lanes)
    assert "fsr_abreast_sum<" in made.source
    close_outputs(subject, made, SIZES)


@pytest.mark.parametrize(("body", "x"), [
    (TREE.replace("r * m + col", "col * n + r"), '"m", "n"'),
    (THREAD.replace("r * m + col", "col * n + r"), '"m", "n"'),
    (THREAD.replace("float mean", f"if (c[col] > 3) {{ {FOLD} }} float mean"), '"n", "m"'),
    (THREAD.replace("float mean", f"for (int i = 0; i < c[col]; i++) {{ {FOLD} sum /= 2; }} float mean"), '"n", "m"'),
], ids=["rows lie apart", "of threads too", "a fold in a branch", "a fold in a loop"])  # fmt: skip
def test_no_move(subject_from, body: str, x: str) -> None:
    grid = '"m"' if "__shared__" in body else '"ceil_div(m, 128)"'
    assert not list(RowsAbreast().moves(subject_from(kernel(body, grid=grid, x=x))))
