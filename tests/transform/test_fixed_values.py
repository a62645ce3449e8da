"""fixed-values: what callers always pass stands as a number; loops of constant length are unrolled; others stay."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.details.fixed_values import FixedValues

ACTION = FixedValues()
SIZES = [{"n": 1}, {"n": 33}, {"n": 200}]
WORK = """
        int sum = 0;
        for (int t = 0; t < taps; t++) sum += x[i + t] * (t % taps + 1);
        y[i] = sum;
"""
SORT = """
        int got = x[i];
        for (int size = 2; size <= taps; size <<= 1)
            for (int step = size >> 1; step > 0; step >>= 1) got += x[i + step - 1] * size;
        y[i] = got;
"""


def kernel(work: str = WORK, *, type_: str = "int", value: str = "8", more: str = "", head: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// [args]
// x = {{role = "in", shape = ["n + 16"], low = 0, high = 9}}
// y = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// taps = {{value = {value}}}
{more}// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
{head}
__global__ void k(const int *x, int *y, int n, {type_} taps) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{{work}    }}
}}
"""


def made(subject_from, text: str, loops: str):
    subject = subject_from(text)
    found = {str(m.param("loops")): m for m in ACTION.moves(subject)}
    return subject, ACTION.apply(subject, found[loops]) if loops in found else None


@pytest.mark.parametrize("work", [WORK, SORT])
@pytest.mark.parametrize("loops", ["kept", "whole"])
@pytest.mark.parametrize(("type_", "value"), [("int", "8"), ("unsigned", "4"), ("const size_t", "8"), ("long", "16")])
def test_results_stay(subject_from, runner, work, loops, type_, value):
    subject, candidate = made(subject_from, kernel(work, type_=type_, value=value), loops)
    body = candidate.source.split("{", 1)[1]
    assert "taps" not in body
    assert ("#pragma unroll" in body) == (loops == "whole")
    for sizes in SIZES:
        expected = runner.outputs(subject.candidate, subject.contract, sizes)["y"]
        assert np.array_equal(runner.outputs(candidate, subject.contract, sizes)["y"], expected)


def test_numbers_keep_their_types(subject_from):
    _, candidate = made(subject_from, kernel("y[i] = x[i] / taps;", type_="unsigned"), "kept")
    assert "x[i] / (unsigned)8" in candidate.source
    _, candidate = made(subject_from, kernel("y[i] = x[i] - taps;", value="-3"), "kept")
    assert "x[i] - -3" in candidate.source or "x[i] - (-3)" in candidate.source


def test_a_flag_is_a_number_too(subject_from):
    _, candidate = made(subject_from, kernel("y[i] = taps ? x[i] : 0;", type_="bool", value="1"), "kept")
    assert "y[i] = true ? x[i] : 0" in candidate.source


def test_loops_within_loops_are_counted_as_they_run(subject_from):
    _, candidate = made(subject_from, kernel(SORT), "whole")
    assert candidate.source.count("#pragma unroll") == 2


@pytest.mark.parametrize(
    "work",
    [
        "for (int t = 0; t < taps; t++) for (int u = 0; u < 127; u++) y[i] = x[i + t] + u * taps + i % 3;",
        "int t = 0; while (t < taps) { if (x[i] > 3) t++; t++; } y[i] = t;",
        "for (int t = 0; t < taps; t++) { y[i] = x[i + t]; t += x[i]; }",
    ],
)
def test_loops_that_are_long_or_of_no_constant_length_stay(subject_from, work):
    _, candidate = made(subject_from, kernel(work, value="16"), "whole")
    assert candidate is None or "#pragma unroll\n    for (int t" not in candidate.source


@pytest.mark.parametrize(
    ("work", "given"),
    [
        (WORK, {"value": '"n"'}),
        (WORK, {"type_": "float"}),
        ("taps += 1; y[i] = x[i] + taps;", {}),
        ("int *p = (int *)&taps; y[i] = *p + x[i];", {}),
        ("{ int taps = x[i]; y[i] = taps; }", {}),
        ("y[i] = PLUS(x[i]);", {"head": "#define PLUS(v) ((v) + taps)"}),
        ("y[i] = x[i];", {}),
    ],
)
def test_what_may_differ_or_is_no_plain_number_stays(subject_from, work, given):
    assert list(ACTION.moves(subject_from(kernel(work, **given)))) == []


def test_a_size_that_is_one_number_is_a_number(subject_from):
    text = kernel().replace("// n = {min", "// taps = 8\n// n = {min").replace("// taps = {value = 8}\n", "")
    _, candidate = made(subject_from, text, "kept")
    assert "t < 8" in candidate.source


def test_a_choice_of_a_scoped_enumeration_keeps_its_type(subject_from, runner):
    work = " y[i] = taps == Way::second ? x[i] : 2 * x[i]; "
    head = "enum class Way { first, second };"
    subject, candidate = made(subject_from, kernel(work, type_="Way", value="1", head=head), "kept")
    assert "(Way)1 == Way::second" in candidate.source
    want, got = (runner.outputs(c, subject.contract, {"n": 33})["y"] for c in (subject.candidate, candidate))
    np.testing.assert_array_equal(got, want)
