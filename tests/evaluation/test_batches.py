"""Many candidates in one compilation."""

from __future__ import annotations

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.evaluation.batches import images
from fsr.records import Candidate, Image, Launch, Plan

ENTRY = Launch("k", ("1", "1", "1"), ("3", "1", "1"), "0", ("y",))


KERNEL = "__global__ void k(int *y) { y[0] = N; }"


@pytest.mark.parametrize("text", [f'extern "C" {KERNEL}', f'extern "C" {{\n{KERNEL}\n}}'])
def test_functions_with_c_linkage_stay_apart(text):
    candidates = [Candidate(text.replace("N", str(n)), Plan((ENTRY,))) for n in range(3)]
    built = images(HostToolchain(), candidates)
    assert [isinstance(built[n][0], Image) for n in range(3)] == [True, True, True]
    assert [built[n][1].launches[0].entry for n in range(3)] == ["c0::k", "c1::k", "c2::k"]


def test_only_what_does_not_compile_is_left_out():
    sources = ["__global__ void k(int *y) { y[0] = 1; }", "__global__ void k(int *y) { y[0] = z; }"]
    good, bad = images(HostToolchain(), [Candidate(s, Plan((ENTRY,))) for s in sources]).values()
    assert isinstance(good, tuple)
    assert "undeclared identifier 'z'" in bad.log
