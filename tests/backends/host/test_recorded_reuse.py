"""What the recorder says about reuse: sectors a block touches first, lines of a request, sectors of the whole grid."""

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice
from fsr.backends.protocol import AccessSite, Buffer
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Launch, Plan, Role

BLOCKS, THREADS = 4, 64


@pytest.fixture(scope="module")
def reads():
    device, toolchain = HostDevice(), HostToolchain()
    x = np.arange(BLOCKS * THREADS * 2, dtype=np.float32)

    def run(body: str) -> dict[int, AccessSite]:
        source = f"__global__ void k(const float* x, float* out) {{\n{body}\n}}\n"
        image = toolchain.compile(
            Candidate(source, Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ()),))), instrumented=True
        )
        assert not isinstance(image, CompileFailure), image.log
        buffers = [Buffer("x", x, Role.IN), Buffer("out", np.zeros_like(x), Role.OUT)]
        launch = ConcreteLaunch("k", (BLOCKS, 1, 1), (THREADS, 1, 1), 0, ("x", "out"))
        (profile,) = device.record(image, [launch], buffers).launches
        return {site.line: site for site in profile.sites if site.kind == "read" and site.buffer == "x"}

    yield run
    device.close()


def test_a_second_pass_of_a_block_touches_nothing_first(reads) -> None:
    found = reads(
        "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "float a = x[i];\n"
        "__syncthreads();\n"
        "out[i] = a + x[i];"
    )  # fmt: skip
    sectors = BLOCKS * THREADS / 8
    assert found[3].block_sectors == sectors
    assert found[5].block_sectors == 0
    assert found[3].unique_sectors == found[5].unique_sectors == sectors


def test_what_every_block_reads_counts_once_a_block(reads) -> None:
    found = reads("out[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x];")[2]
    assert found.block_sectors == BLOCKS * THREADS / 8
    assert found.unique_sectors == THREADS / 8


def test_lines_of_a_request(reads) -> None:
    aligned = reads("out[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];")[2]
    strided = reads("out[threadIdx.x] = x[threadIdx.x * 8];")[2]
    assert aligned.lines == aligned.requests
    assert strided.lines == strided.requests * 8  # 32 lanes, 32 bytes apart
    assert strided.sectors == strided.requests * 32


def test_two_reads_of_the_same_sectors_on_one_line_are_no_more_sectors(reads) -> None:
    found = reads("out[threadIdx.x] = x[threadIdx.x * 2] + x[threadIdx.x * 2 + 1];")[2]
    assert found.unique_sectors <= BLOCKS * THREADS * 2 / 8 + 1
    assert found.block_sectors == BLOCKS * THREADS * 2 / 8
