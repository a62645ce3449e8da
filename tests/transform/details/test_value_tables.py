"""value-tables: what loops compute of a byte, or of the difference of two, is looked up, with the same bits."""

from __future__ import annotations

import pytest

from fsr.transform.details.value_tables import ValueTables

SIZES = [{"n": n, "r": r} for n, r in [(1, 0), (40, 2), (130, 3)]]


def kernel(body: str, *, before: str = "", params: str = "float g, int r, int n") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 2048}}
// r = {{min = 0, max = 8, timed = 4}}
// [args]
// y = {{role = "out", dtype = "float32", shape = ["n"]}}
// x = {{role = "in", dtype = "uint8", shape = ["n"]}}
// c = {{role = "in", dtype = "int8", shape = ["n"]}}
// g = {{low = 0.5, high = 4.0}}
// r = {{value = "r"}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// [tolerance]
// sum_length = "2 * r + 1"
// ///
{before}
__global__ void k(float *y, const unsigned char *x, const signed char *c, {params})
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = -r; j <= r; j++) {{
        int at = min(max(i + j, 0), n - 1);
        {body}
    }}
    y[i] = sum;
}}
"""


@pytest.mark.parametrize(("body", "table"), [
    ("sum += expf(-(x[at] - x[i]) * (x[at] - x[i]) / (2.0f * g));", "float values[511]"),
    ("int d = x[at] - x[i]; sum += exp(-pow((double)d, 2.0) / g) * j;", "double values[511]"),
    ("float v = x[at] / 255.0f; sum += powf(v, g) * x[i];", "float values[256]"),
    ("sum += sqrtf(abs(x[at] - x[i])) + c[at];", "float values[256]"),
    ("sum += tanhf(c[at] * g) + logf(x[at] + 1.0f);", "float values[256]"),
    ("unsigned char a = x[at], b = x[i]; sum += cosf((float)(a - b) * g);", "float values[511]"),
], ids=["a difference", "by a variable", "by a fraction", "a magnitude", "two", "bytes in variables"])  # fmt: skip
def test_the_results_have_the_same_bits(subject_from, runner, body: str, table: str) -> None:
    subject, action = subject_from(kernel(body)), ValueTables()
    (move,) = action.moves(subject)
    made = action.apply(subject, move)
    assert f"__shared__ {table};" in made.source
    runner.check(subject, made, *SIZES)


@pytest.mark.parametrize("body", [
    "sum += x[at] * g;",
    "sum += expf(-(x[at] - x[i]) * j);",
    "sum += expf(y[at] * x[at]);",
    "g += 1.0f; sum += expf(x[at] * g);",
    "float v = x[at] / 255.0f; v = v * v; sum += expf(v);",
    "sum += expf((x[at] - x[i]) * c[at]);",
    "sum += own(x[at], g);",
    "sum += expf(at * g);",
    "int d = x[at]; d = d * j; sum += expf(d * g);",
], ids=["nothing dear", "another integer", "other data", "an argument changes", "a variable changes", "two of them",
        "own", "many values", "an integer that changes"])  # fmt: skip
def test_no_move(subject_from, body: str) -> None:
    own = "__device__ float own(int v, float g) { return expf(v * g); }"
    assert not list(ValueTables().moves(subject_from(kernel(body, before=own))))


def test_what_is_computed_once_a_thread_is_left_alone(subject_from) -> None:
    text = kernel("sum += 1.0f;").replace("y[i] = sum", "y[i] = sum + expf(x[i] * g)")
    assert not list(ValueTables().moves(subject_from(text)))
