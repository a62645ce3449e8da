"""Arrays in local memory: told to the recorder, and what lanes at different elements cost."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice
from fsr.backends.protocol import AccessSite, Buffer
from fsr.hardware.gpus import H200
from fsr.prediction.locals import with_locals_told
from fsr.prediction.predict import Prediction, predict
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Launch, Plan, Role

PLAN = Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ()),))
BLOCKS, THREADS, TURNS = 1024, 128, 40
# An element is a word of all lanes: see fsr/emulator/runtime/locals.cpp.
COUNT = """__global__ void k(const int* x, int* out) {
  TYPE counts[32] = {0};
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < 40; i++)
    counts[x[at + i] SPREAD] += i;
  out[at] = counts[x[at]];
}"""
SHARED = """__global__ void k(const int* x, int* out) {
  __shared__ int counts[32 * 128];
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int e = 0; e < 32; e++) counts[e * 128 + threadIdx.x] = 0;
  for (int i = 0; i < 40; i++)
    counts[x[at + i] % 32 * 128 + threadIdx.x] += i;
  out[at] = counts[x[at] * 128 + threadIdx.x];
}"""


@pytest.fixture(scope="module")
def predicted():
    device, toolchain = HostDevice(), HostToolchain()

    def run(source: str, told: bool = True) -> Prediction:
        candidate = Candidate(source, PLAN)
        image = toolchain.compile(with_locals_told(candidate) if told else candidate, instrumented=True)
        assert not isinstance(image, CompileFailure), image.log
        x = np.tile(np.arange(32, dtype=np.int32), BLOCKS * THREADS // 32 + 2)
        buffers = [Buffer("x", x, Role.IN), Buffer("out", np.zeros(BLOCKS * THREADS, np.int32), Role.OUT)]
        launch = ConcreteLaunch("k", (BLOCKS, 1, 1), (THREADS, 1, 1), 0, ("x", "out"))
        profile = device.record(image, [launch], buffers)
        assert not profile.faults
        return predict(profile, image.resources, H200, float(x.nbytes))

    yield run
    device.close()


def counting(predicted: Prediction) -> AccessSite:
    (site,) = [s for s in predicted.launches[0].profile.sites if (s.space, s.kind, s.line) == ("local", "read", 5)]
    return site


@pytest.mark.parametrize(("spread", "lines"), [("/ 32", 1), ("% 8", 8), ("% 32", 32)])
def test_lanes_at_different_elements_touch_as_many_lines(predicted, spread: str, lines: int) -> None:
    site = counting(predicted(COUNT.replace("SPREAD", spread).replace("TYPE", "int")))
    assert site.requests == BLOCKS * THREADS / 32 * TURNS
    assert site.lines == lines * site.requests


@pytest.mark.parametrize(("type_", "lines"), [("unsigned char", 8), ("double", 32)])
def test_a_line_is_a_word_of_each_lane(predicted, type_: str, lines: int) -> None:
    site = counting(predicted(COUNT.replace("SPREAD", "% 32").replace("TYPE", type_)))
    assert site.lines == lines * site.requests


def test_shared_memory_is_predicted_to_be_faster(predicted) -> None:
    local, shared = predicted(COUNT.replace("SPREAD", "% 32").replace("TYPE", "int")), predicted(SHARED)
    assert local.binds == "uncoalesced"
    assert local.time_ns > 2 * shared.time_ns
    assert local.launches[0].limits["l1"] > 10 * shared.launches[0].limits["l1"]


def test_what_is_in_registers_costs_what_it_did(predicted) -> None:
    """Scalars on the CPU's stack, and arrays of constant indices."""
    plain = """__device__ __noinline__ void step(int* p, int* q) { *p += *q; *q ^= 1; }
__global__ void k(const int* x, int* out) {
  int a[4] = {0}, at = blockIdx.x * blockDim.x + threadIdx.x, b = x[at];
  for (int i = 0; i < 4; i++) step(&a[i], &b);
  out[at] = a[0] + a[3] + b;
}"""
    candidate = Candidate(plain, PLAN)
    assert with_locals_told(candidate) is candidate
    assert {s.space for s in predicted(plain).launches[0].profile.sites} == {"global"}


def test_scalars_beside_such_an_array_are_not_counted(predicted) -> None:
    beside = COUNT.replace("TYPE", "int").replace("SPREAD", "% 32").replace("+= i", "+= step(&at, i)")
    beside = "__device__ __noinline__ int step(int* p, int i) { return *p + i; }" + beside
    sites = predicted(beside).launches[0].profile.sites
    assert {s.line for s in sites if s.space == "local"} == {5, 6}


def test_a_text_keeps_its_lines() -> None:
    told = with_locals_told(Candidate(COUNT, PLAN)).source
    assert "TYPE counts[32] = {0}; fsr_note_local(counts, sizeof(counts));" in told
    assert told.count("\n") == COUNT.count("\n")
    head = "__global__ void k(int* x) { for (int i = 0, a[3] = {7}; a[x[i]] > i; i++) x[i] = a[0]; }"
    assert with_locals_told(Candidate(head, PLAN)).source == head
