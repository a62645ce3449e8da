"""What is known of a launch: sizes as the contract names them, and which of its buffers may share memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.source.form import Binary, Name
from fsr.transform.target import Target, targets

TEXT = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 1000, timed = 100}
// m = {min = 4, max = 1000, timed = 100}
// [args]
// x = {role = "in", shape = ["n + m"], dtype = "float32"}
// y = {role = "inout", shape = ["n + m"], dtype = "float32"}
// z = {role = "inout", shape = ["n + m"], dtype = "float32"}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, float *z, int n, int m)
{
    const int half = (m - 1) / 2, odd = (n - 1) / 2, rest = (n - 1) % 4, small = min(n, 8) * 2;
    const unsigned char low = n;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + half + odd + rest + small + low;
    n = 3;
}
"""


def test_a_kernel_that_is_launched_again_and_again_is_no_target(subject_from):
    subject = subject_from(TEXT)
    (launch,) = subject.candidate.plan.launches
    plan = replace(subject.candidate.plan, launches=(replace(launch, repeat="m"),))
    assert list(targets(subject))
    assert not list(targets(replace(subject, candidate=replace(subject.candidate, plan=plan))))


@pytest.fixture
def target(subject_from) -> Target:
    (found,) = targets(subject_from(TEXT.replace("    n = 3;\n", "")))
    return found


def test_sizes_are_those_that_c_computes(target):
    assert target.size_text(Name("half")) == "((m - 1) // 2)"
    assert target.size_text(Name("small")) == "(min(n, 8) * 2)"
    # with n = 0, C gives 0 and -1, Python's // and % give -1 and 3
    assert [target.size_text(Name(name)) for name in ("odd", "rest")] == [None, None]
    assert target.size_text(Name("low")) is None  # modulo 256
    assert (target.largest(Name("half")), target.timed(Name("half"))) == (499, 49)


def test_sums_that_callers_pass_stand_in_brackets(subject_from):
    (found,) = targets(subject_from(TEXT.replace("    n = 3;\n", "").replace('"m"}', '"m + 1 - 4"}')))
    assert found.size_text(Binary("*", Name("m"), Name("m"))) == "((m + 1 - 4) * (m + 1 - 4))"
    assert found.largest(Binary("-", Name("n"), Name("m"))) == 1000 - 1


def test_a_changed_parameter_is_no_size(subject_from):
    (found,) = targets(subject_from(TEXT))
    assert found.size_text(Name("n")) is None
    assert found.size_text(Name("m")) == "m"


@pytest.mark.parametrize(
    ("groups", "shared"),
    [((), set()), ((("x", "y"),), {"x", "y"}), ((("x", "y"), ("y", "z")), {"x", "y", "z"}), ((("x", "w"),), set())],
)
def test_what_shares_memory_is_what_the_contract_says(target, groups, shared):
    found = replace(target, contract=replace(target.contract, aliasing=groups))
    assert found.unaliased == {"x", "y", "z"} - shared
    assert found.aliasing == bool(shared)
    assert not found.may_alias("x", "z")
