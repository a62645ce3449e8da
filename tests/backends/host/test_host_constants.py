"""`__constant__` variables get what callers put into them, before every run, with every compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import BlockOrder, Buffer, DeviceFault
from fsr.evaluation.batches import together
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role

SOURCE = """
static __constant__ float own[3];
namespace filters { __constant__ int taps[2]; namespace { __constant__ double hidden; } }
__global__ void k(double *y) { y[threadIdx.x] = own[threadIdx.x] + filters::taps[1] + filters::hidden; }
"""
ENTRY = Launch("k", ("1", "1", "1"), ("3", "1", "1"), "0", ("y",))


def buffers(own, taps=(0, 10), hidden=100.0):
    return (
        Buffer("y", np.zeros(3), Role.OUT),
        Buffer("a", np.asarray(own, np.float32), Role.IN, symbol="own"),
        Buffer("b", np.asarray(taps, np.int32), Role.IN, symbol="filters::taps"),
        Buffer("c", np.asarray([hidden]), Role.IN, symbol="filters::hidden"),
    )


LAUNCH = [ConcreteLaunch("k", (1, 1, 1), (3, 1, 1), 0, ("y",))]


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
def test_every_plan_of_an_image_finds_its_own_values(host, compiler):
    image = HostToolchain(compiler).compile(Candidate(SOURCE, Plan((ENTRY,))))
    assert isinstance(image, Image), image
    with host.prepare(image, LAUNCH, buffers([1, 2, 3])) as first, host.prepare(
        image, LAUNCH, buffers([4, 5, 6], (0, 20), 0.5)
    ) as second:  # fmt: skip
        for _ in range(2):
            first.run()
            second.run()
            assert first.read()["y"].tolist() == [111, 112, 113]
            assert second.read()["y"].tolist() == [24.5, 25.5, 26.5]
        assert not first.violations()


def test_recorded_and_watched_runs_find_them_too(host):
    image = HostToolchain(watched=True).compile(Candidate(SOURCE, Plan((ENTRY,))))
    assert isinstance(image, Image), image
    faults, arrays = host.watch(image, LAUNCH, buffers([1, 2, 3]), BlockOrder(seed=1, backward=1))
    assert not faults
    assert arrays["y"].tolist() == [111, 112, 113]


def test_a_variable_that_is_gone_or_of_another_size_is_one_clear_fault(host):
    image = HostToolchain().compile(Candidate(SOURCE.replace("own", "other"), Plan((ENTRY,))))
    assert isinstance(image, Image), image
    with (
        pytest.raises(DeviceFault, match=r"callers fill the __constant__ variable 'own' .* has none: keep its name"),
        host.prepare(image, LAUNCH, buffers([1, 2, 3])) as prepared,
    ):
        prepared.run()
    image = HostToolchain().compile(Candidate(SOURCE.replace("own[3]", "own[4]"), Plan((ENTRY,))))
    assert isinstance(image, Image), image
    with (
        pytest.raises(DeviceFault, match=r"12 bytes.*one of 16 bytes"),
        host.prepare(image, LAUNCH, buffers([1, 2, 3])) as prepared,
    ):
        prepared.run()


def test_each_of_several_candidates_in_one_image_has_its_own(host):
    whole, plans = together([Candidate(SOURCE, Plan((ENTRY,))) for _ in range(2)])
    image = HostToolchain().compile(whole)
    assert isinstance(image, Image), image
    entries = [ConcreteLaunch(plan.launches[0].entry, (1, 1, 1), (3, 1, 1), 0, ("y",)) for plan in plans]
    with host.prepare(image, entries[:1], buffers([1, 2, 3])) as first, host.prepare(
        image, entries[1:], buffers([4, 5, 6])
    ) as second:  # fmt: skip
        first.run()
        second.run()
        assert first.read()["y"].tolist() == [111, 112, 113]
        assert second.read()["y"].tolist() == [114, 115, 116]
        first.run()
        assert first.read()["y"].tolist() == [111, 112, 113]


def test_a_kernel_of_a_namespace_names_its_own_without_it(host):
    text = (
        "__constant__ float own[2]; namespace a { namespace b { __constant__ float own[3]; __constant__ int taps[2]; "
    )
    text += "__global__ void k(double *y) { y[threadIdx.x] = own[threadIdx.x] + taps[1]; } } }"
    image = HostToolchain().compile(
        Candidate(text, Plan((Launch("a::b::k", ("1",) * 3, ("3", "1", "1"), "0", ("y",)),)))
    )
    assert isinstance(image, Image), image
    y, own, taps, _ = buffers([1, 2, 3])
    launch = ConcreteLaunch("a::b::k", (1, 1, 1), (3, 1, 1), 0, ("y",))
    with host.prepare(image, [launch], (y, own, replace(taps, symbol="taps"))) as prepared:
        prepared.run()
        assert prepared.read()["y"].tolist() == [11, 12, 13]
