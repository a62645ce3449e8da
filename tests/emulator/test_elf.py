"""Names and places of variables in a shared object, and the text carried behind it."""

from __future__ import annotations

import shutil
from itertools import pairwise

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.emulator.elf import Variable, attach_source, attached_source, read_variables
from fsr.records import Candidate, Image, Launch, Plan

SOURCE = """
__device__ int counter; __constant__ float table[3] = {1, 2, 3}; static __device__ double hidden[2];
__shared__ float global_tile[10];
template <int N> __global__ void k(float* out) {
  __shared__ float tile[N];
  { __shared__ int again[2]; again[threadIdx.x & 1] = 1; __syncthreads(); out[1] = again[~threadIdx.x & 1]; }
  { __shared__ int again[4]; again[threadIdx.x & 3] = 1; __syncthreads(); out[2] = again[~threadIdx.x & 3]; }
  tile[threadIdx.x] = global_tile[threadIdx.x] = table[counter++]; hidden[threadIdx.x] = 1;
  __syncthreads();
  out[0] = tile[N - 1 - threadIdx.x] + hidden[~threadIdx.x & 1] + global_tile[9 - threadIdx.x];
}"""


@pytest.fixture(scope="module", params=["clang++-22", "g++"])
def image(request):
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    plan = Plan((Launch("k<7>", ("1",) * 3, ("1",) * 3, "0", ()),))
    image = HostToolchain(request.param).compile(Candidate(SOURCE, plan))
    assert isinstance(image, Image), image
    return image.data


def test_variables_by_space_name_and_size(image):
    variables = read_variables(image)
    shared = [(v.name, v.size_bytes) for v in variables.shared if not v.name.startswith("_")]
    assert sorted(shared) == [("again", 8), ("again", 16), ("global_tile", 40), ("tile", 28)]
    assert all(("1k" in v.function) == (v.name != "global_tile") for v in variables.shared if v.name[0] != "_")
    data = {v.name: v.size_bytes for v in variables.data}
    assert (data["counter"], data["table"], data["hidden"]) == (4, 12, 16)
    offsets = [(v.offset, v.offset + v.size_bytes) for v in variables.shared]
    assert all(end <= start for (_, end), (start, _) in pairwise(offsets))


def test_other_files_are_refused():
    with pytest.raises(ValueError):
        read_variables(b"MZ" + bytes(100))


def test_source_travels_behind_the_image(image):
    assert attached_source(image) == ""
    carried = attach_source(image, "ä kernel")
    assert attached_source(carried) == "ä kernel"
    assert read_variables(carried) == read_variables(image)
    assert Variable("a", 0, 4).function == ""
