"""CUB's collectives of warps and blocks on the CPU: what they answer, where, and what their wrong use leads to."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import DeviceFault
from fsr.records import Candidate, CompileFailure, FaultKind, Launch, Plan

RNG = np.random.default_rng(5)
HEAD = "#include <cub/cub.cuh>\n"


def in_block(body: str, item: str = "float") -> str:
    return f"{HEAD}template <int B> __global__ void k(const {item}* x, {item}* out, int valid) {{\n{body}\n}}"


REDUCED = in_block("""  typedef cub::BlockReduce<float, B> Reduce;
  __shared__ typename Reduce::TempStorage left, right;
  __shared__ typename Reduce::TempStorage third;
  float v = x[threadIdx.x], two[2] = {v, -2.0f * v};
  float sum = Reduce(left).Sum(v), largest = Reduce(right).Reduce(v, cub::Max());
  float some = Reduce(third).Reduce(v, cub::Max(), valid), both = Reduce().Sum(two);
  if (threadIdx.x == 0) { out[0] = sum; out[1] = largest; out[2] = some; out[3] = both; }""")


@pytest.mark.parametrize("block", [1, 20, 32, 80, 256])
def test_a_block_is_reduced_to_its_first_thread(run, block):
    x = RNG.integers(-99, 100, block).astype("f4")
    valid = (block + 1) // 2
    out = run(REDUCED, f"k<{block}>", 1, block, x=x, out=np.zeros(4, "f4"), valid=valid)["out"]
    assert out.tolist() == [x.sum(), x.max(), x[:valid].max(), -x.sum()]


def test_warps_are_reduced_in_the_order_of_the_shuffles(run):
    x = RNG.standard_normal(64).astype("f4")
    out = run(REDUCED, "k<64>", 1, 64, x=x, out=np.zeros(4, "f4"), valid=1)["out"]
    halves = x.reshape(2, 32)
    for _ in range(5):  # lane 0 takes its neighbour's, then what the third and fourth have, ...
        halves = halves[:, ::2] + halves[:, 1::2]
    assert out[0] == halves[0, 0] + halves[1, 0]


def test_the_first_of_the_largest_is_found(run):
    source = in_block("""  typedef cub::KeyValuePair<int, float> Pair;
  typedef cub::BlockReduce<Pair, B> Reduce;
  __shared__ typename Reduce::TempStorage left, right;
  Pair own(threadIdx.x, x[threadIdx.x]);
  Pair high = Reduce(left).Reduce(own, cub::ArgMax()), low = Reduce(right).Reduce(own, cub::ArgMin());
  if (threadIdx.x == 0) { out[0] = high.key; out[1] = high.value; out[2] = low.key; out[3] = low.value; }""")
    x = RNG.integers(-9, 9, 96).astype("f4")
    out = run(source, "k<96>", 1, 96, x=x, out=np.zeros(4, "f4"), valid=0)["out"]
    assert out.tolist() == [x.argmax(), x.max(), x.argmin(), x.min()]


SCANNED = in_block("""  typedef cub::BlockScan<int, B> Scan;
  __shared__ typename Scan::TempStorage memory;
  struct Carried {
    int total;
    __device__ int operator()(int of_all) { int before = total; total += of_all; return before; }
  } carried{valid};
  int v = x[threadIdx.x], upto, before, total, from, pair[2] = {v, 2 * v}, sums[2];
  Scan(memory).InclusiveSum(v, upto, total);
  __syncthreads();
  Scan(memory).ExclusiveSum(v, before);
  __syncthreads();
  Scan(memory).ExclusiveSum(v, from, carried);
  __syncthreads();
  Scan(memory).InclusiveSum(pair, sums);
  __syncthreads();
  int largest, initial = -5;
  Scan(memory).ExclusiveScan(v, largest, initial, cub::Max());
  __syncthreads();
  Scan(memory).ExclusiveSum(pair, pair);
  int* o = out + 9 * threadIdx.x;
  o[0] = upto, o[1] = before, o[2] = total, o[3] = from, o[4] = sums[0], o[5] = sums[1], o[6] = largest;
  o[7] = pair[0], o[8] = pair[1];""", "int")  # fmt: skip


@pytest.mark.parametrize("block", [1, 32, 50, 128])
def test_running_folds_of_a_block(run, block):
    x = RNG.integers(-99, 100, block).astype("i4")
    out = run(SCANNED, f"k<{block}>", 1, block, x=x, out=np.zeros(9 * block, "i4"), valid=7)["out"].reshape(block, 9)
    upto = np.cumsum(x)
    before = upto - x
    assert (out[:, 0] == upto).all()
    assert (out[:, 1] == before).all()
    assert (out[:, 2] == x.sum()).all()
    assert (out[:, 3] == before + 7).all()
    assert (out[:, 4:6] == np.stack([3 * before + x, 3 * upto], 1)).all()
    assert (out[:, 6] == np.maximum.accumulate(np.concatenate([[-5], x[:-1]]))).all()
    assert (out[:, 7:9] == np.stack([3 * before, 3 * before + x], 1)).all()


def test_logical_warps_and_values_of_many_bytes(run):
    source = (
        HEAD
        + """struct Four { double v[4]; };
__global__ void k(const double* x, double* out) {
  typedef cub::WarpReduce<Four, 8> Reduce;
  typedef cub::WarpScan<double, 16> Scan;
  __shared__ typename Reduce::TempStorage memory[8];
  __shared__ typename Scan::TempStorage scanned[4];
  Four own;
  for (int i = 0; i < 4; ++i) own.v[i] = x[threadIdx.x] * (i + 1);
  Four sum = Reduce(memory[threadIdx.x / 8]).Reduce(own, [](const Four& a, const Four& b) {
    Four r; for (int i = 0; i < 4; ++i) r.v[i] = a.v[i] + b.v[i]; return r; });
  if (threadIdx.x % 8 == 0) for (int i = 0; i < 4; ++i) out[threadIdx.x / 2 + i] = sum.v[i];
  double upto, before;
  Scan(scanned[threadIdx.x / 16]).InclusiveSum(x[threadIdx.x], upto);
  Scan(scanned[threadIdx.x / 16]).ExclusiveSum(x[threadIdx.x], before);
  out[32 + threadIdx.x] = upto + before;
}"""
    )
    x = RNG.integers(-99, 100, 64).astype("f8")
    out = run(source, "k", 1, 64, x=x, out=np.zeros(96))["out"]
    assert (out[:32].reshape(8, 4) == np.outer(x.reshape(8, 8).sum(1), [1, 2, 3, 4])).all()
    upto = np.cumsum(x.reshape(4, 16), axis=1).ravel()
    assert (out[32:] == 2 * upto - x).all()


def test_memory_that_is_used_again_without_a_barrier_is_a_race(record):
    body = """  typedef cub::BlockReduce<float, B> Reduce;
  __shared__ typename Reduce::TempStorage memory;
  float sum = Reduce(memory).Sum(x[threadIdx.x]);
  BETWEEN
  sum += Reduce(memory).Sum(-x[threadIdx.x] * valid);
  if (threadIdx.x == 0) out[0] = sum;"""
    data = {"x": np.ones(96, "f4"), "out": np.ones(4, "f4"), "valid": 2}
    faults = {}
    for between in ("", "__syncthreads();"):
        profile = record(in_block(body.replace("BETWEEN", between)), "k<96>", 1, 96, **data)
        faults[between] = {fault.kind for fault in profile.faults}
    assert FaultKind.RACE in faults[""]
    assert not faults["__syncthreads();"]


def test_a_block_of_another_size_and_one_that_is_not_all_there_are_faults(run):
    with pytest.raises(DeviceFault, match="another size"):
        run(REDUCED, "k<64>", 1, 96, x=np.ones(96, "f4"), out=np.zeros(4, "f4"), valid=1)
    divided = in_block("""  typedef cub::BlockReduce<float, B> Reduce;
  __shared__ typename Reduce::TempStorage left, right;
  float v;
  if (threadIdx.x < 32) v = Reduce(left).Sum(x[threadIdx.x]);
  else v = Reduce(right).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = v;""")
    with pytest.raises(DeviceFault):
        run(divided, "k<64>", 1, 64, x=np.ones(64, "f4"), out=np.zeros(4, "f4"), valid=1)


@pytest.mark.parametrize(
    "name", ["BlockRadixSort<float, 64, 1>", "BlockLoad<float, 64, 4>", "BlockExchange<int, 64, 2>"]
)
def test_other_collectives_are_refused_by_name(name):
    source = in_block(f"  typedef cub::{name} C;\n  __shared__ typename C::TempStorage memory;")
    plan = Plan((Launch("k<64>", ("1", "1", "1"), ("64", "1", "1"), "0", ()),))
    failure = HostToolchain().compile(Candidate(source, plan))
    assert isinstance(failure, CompileFailure)
    assert f"cub::{name.split('<')[0]} is not executed on the CPU" in failure.log
