"""Flags and hints that the CPU's code does not show: which loads go past the L1, what fast mathematics saves."""

import dataclasses

import pytest

from fsr.backends.protocol import Arithmetic
from fsr.hardware.gpus import H200
from fsr.prediction.compiled import as_compiled
from fsr.prediction.predict import predict
from fsr.records import Launch, Plan

SOURCE = """__global__ void k({x} x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = {load};
}}
"""
PAST = ("--ptxas-options=-dlcm=cg",)


def plan(*flags: str) -> Plan:
    return Plan((Launch("k", ("n/256", "1", "1"), ("256", "1", "1"), "0", ("x", "y", "n")),), flags=flags)


def past(make, flags, pointer="const float*", load="x[i]", written=()):
    """The buffers whose loads are told to go past the L1."""
    sites = [make.site(1024, 4), make.site(1024, 4, kind="write", buffer="y")]
    sites += [make.site(1024, 4, kind="write", buffer=name) for name in written]
    made = as_compiled(make.profile(make.launch(sites)), SOURCE.format(x=pointer, load=load), plan(*flags))
    return {s.buffer for s in made.launches[0].sites if s.past_l1}


def test_loads_go_past_the_l1_by_flag(make) -> None:
    assert past(make, PAST) == {"x"}
    assert past(make, ("-Xptxas=-dlcm=cg",)) == {"x"}


@pytest.mark.parametrize("flags", [(), ("--use_fast_math",), ("--ptxas-options=-dlcm=ca",), ("--maxrregcount=64",)])
def test_other_flags_leave_loads_in_the_l1(make, flags) -> None:
    assert past(make, flags) == set()


@pytest.mark.parametrize("pointer", ["const float* __restrict__", "float* __restrict__", "const float *__restrict"])
def test_the_read_only_path_keeps_its_loads_in_the_l1(make, pointer) -> None:
    assert past(make, PAST, pointer) == set()


def test_what_a_kernel_writes_is_not_read_by_the_read_only_path(make) -> None:
    assert past(make, PAST, "float* __restrict__", written=["x"]) == {"x"}


def test_hints_decide_for_their_line(make) -> None:
    assert past(make, PAST, load="__ldg(&x[i])") == set()
    assert past(make, (), load="__ldcg(&x[i])") == {"x"}
    assert past(make, (), "const float* __restrict__", load="__ldcg(&x[i])") == {"x"}
    assert past(make, (), load="__ldcs(&x[i])") == {"x"}  # evicted first
    assert past(make, (), load="__ldg(&x[i])") == set()


def test_kernels_that_are_not_read_go_past_the_l1(make) -> None:
    profile = make.profile(make.launch([make.site(1024, 4)]))
    assert as_compiled(profile, "", plan(*PAST)).launches[0].sites[0].past_l1


def test_reuse_that_the_l1_would_catch_costs_the_l2(make) -> None:
    hot = make.site(1 << 26, 4, unique_sectors=1024.0, block_sectors=65536.0)
    cached, past_l1 = (
        predict(make.profile(make.launch([dataclasses.replace(hot, past_l1=one)], blocks=8192)), {}, H200, 65536.0)
        for one in (False, True)
    )  # fmt: skip
    assert past_l1.launches[0].limits["l2"] > 10 * cached.launches[0].limits["l2"]
    assert past_l1.time_ns > 1.5 * cached.time_ns


def test_fast_mathematics_saves_instructions(make) -> None:
    arithmetic = Arithmetic(special=300.0, divisions=100.0, functions=200.0)
    profile = make.profile(make.launch([], warp_instructions=10_000.0, arithmetic=arithmetic))

    def left(*flags: str) -> float:
        return as_compiled(profile, "", plan(*flags)).launches[0].warp_instructions

    assert left() == left("--maxrregcount=64") == 10_000.0
    assert left("--use_fast_math") < left("--ftz=true", "--prec-div=false", "--prec-sqrt=false") < left()


@pytest.mark.parametrize(
    "load", ["(double)x[i]", "x[i] * 0.5", "x[i] + 1e-3", "x[i] + 2.", "cuCreal(z) + make_double2(1, 2).x"]
)
def test_fp64_is_what_the_text_has(make, load) -> None:
    counted = make.profile(make.launch([], arithmetic=Arithmetic(doubles=100.0)))
    assert as_compiled(counted, SOURCE.format(x="float*", load=load), plan()).launches[0].arithmetic.doubles == 100.0


@pytest.mark.parametrize(
    "load", ["x[i] * 0.5f", "x[i] + 1e-3f", "__hfma(x[i], x[i], x[i])", "x[i] * 2", "x2[i] + 0x1e3"]
)
def test_what_the_host_device_does_in_fp64_for_other_types_is_none(make, load) -> None:
    counted = make.profile(make.launch([], arithmetic=Arithmetic(doubles=100.0)))
    assert as_compiled(counted, SOURCE.format(x="half*", load=load), plan()).launches[0].arithmetic.doubles == 0.0
