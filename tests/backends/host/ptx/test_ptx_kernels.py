"""Memory as inline PTX reaches it, and whole kernels as experts write them: their results, and what is recorded."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.evaluation.orders import ORDERS
from fsr.records import Candidate, ConcreteLaunch, FaultKind, Image, Launch, Plan, Role, ScalarValue

ONE = ("1", "1", "1")

LOADS = {  # type, register: what is loaded into a register that may be wider
    "u8": ("r", lambda b: int(b[0])), "s8": ("r", lambda b: int(b.view("i1")[0]) & 0xFFFFFFFF),
    "b8": ("h", lambda b: int(b[0])), "s8 ": ("h", lambda b: int(b.view("i1")[0]) & 0xFFFF),
    "u16": ("r", lambda b: int(b.view("u2")[0])), "s16": ("l", lambda b: int(b.view("i2")[0]) & (2**64 - 1)),
    "f16": ("h", lambda b: int(b.view("u2")[0])), "b32": ("r", lambda b: int(b.view("u4")[0])),
    "s32": ("l", lambda b: int(b.view("i4")[0]) & (2**64 - 1)), "u64": ("l", lambda b: int(b.view("u8")[0])),
}  # fmt: skip
HOLDERS = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long"}


def test_loads_extend_and_hints_change_nothing(run):
    ways = [
        "", ".global", ".global.nc", ".global.cs", ".global.L1::no_allocate", ".volatile.global", ".relaxed.gpu.global",
        ".global.nc.L2::128B", ".acquire.sys.global", ".weak.global.cg",
    ]  # fmt: skip
    blocks, want = [], []
    data = (np.arange(64) * 37 % 251 + 3).astype("u1")
    for n, (type, (kind, meaning)) in enumerate(LOADS.items()):
        way = ways[n % len(ways)]
        blocks.append(
            f'{{ {HOLDERS[kind]} v; asm volatile("ld{way}.{type.strip()} %0, [%1+8];" : "={kind}"(v) : "l"(x)); '
            f"out[{n}] = v; }}"
        )
        want.append(meaning(data[8:16]))
    source = f"__global__ void k(const unsigned char* x, unsigned long long* out) {{ {' '.join(blocks)} }}"
    out = run(source, "k", 1, 1, x=data, out=np.zeros(len(blocks), "u8"))["out"]
    assert [int(v) for v in out] == want


VECTORS = """
__global__ void k(const float* x, float* out, int* io) {
  __shared__ __align__(16) float tile[64];
  int t = threadIdx.x;
  float a, b, c, d; unsigned long long p, q; unsigned at;
  asm("{ .reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s; }" : "=r"(at) : "l"(tile));
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + 4 * t));
  at += 16 * t;
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(d), "f"(c), "f"(b), "f"(a) : "memory");
  at -= 16 * t;
  asm volatile("barrier.sync 0;" ::: "memory");
  asm volatile("ld.shared.v2.u64 {%0, %1}, [%2+-16];" : "=l"(p), "=l"(q) : "r"(at + 256 - 16 * t) : "memory");
  asm volatile("st.global.cs.v2.b64 [%0+16], {%1, %2};" ::"l"(out + 4 * t - 4), "l"(p), "l"(q) : "memory");
  int old; float was;
  asm volatile("barrier.cta.sync.aligned 0, 16;" ::: "memory");
  asm volatile("atom.global.add.u32 %0, [%1], 3;" : "=r"(old) : "l"(io) : "memory");
  asm volatile("red.relaxed.gpu.global.max.s32 [%0+4], %1;" ::"l"(io), "r"(old) : "memory");
  asm volatile("atom.shared.cas.b32 %0, [%1], %2, 9;" : "=r"(old) : "r"(at + 4 * t), "r"(__float_as_int(tile[t])));
  asm volatile("atom.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(io + 2 + t), "r"(old));
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(io + 20), "f"(0.5f));
  asm volatile("atom.global.add.f32 %0, [%1], 0f3F000000;" : "=f"(was) : "l"(io + 20));
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(io + 21), "r"(0x3C003800));
  asm volatile("atom.global.inc.u32 %0, [%1], 6;" : "=r"(old) : "l"(io + 22));
  asm volatile("atom.global.or.b32 %0, [%1], %2;" : "=r"(old) : "l"(io + 23), "r"(1 << t));
}"""


def test_vectors_and_updates(run, record):
    x = np.arange(64).astype("f4") + 0.5
    io = np.zeros(24, "i4")
    io[1] = -5
    got = run(VECTORS, "k", 1, 16, x=x, out=np.zeros(64, "f4"), io=io)
    reversed_ = x.reshape(16, 4)[::-1, ::-1].ravel()
    assert (got["out"] == reversed_).all()
    assert got["io"][:2].tolist() == [48, 45]
    assert (got["io"][2:18].view("f4") == x.reshape(16, 4)[:, ::-1].ravel()[:16]).all()
    assert got["io"][20].view("f4") == 16.0
    assert got["io"][21:22].view("f2").tolist() == [8.0, 16.0]
    assert got["io"][22:].tolist() == [16 % 7, 0xFFFF]
    profile = record(VECTORS, "k", 1, 16, x=x, out=np.zeros(64, "f4"), io=io)
    assert profile.faults == ()
    sites = {(s.line, s.space, s.kind): s for s in profile.launches[0].sites}
    wide = sites[7, "global", "read"]
    assert (wide.requests, wide.lanes, wide.bytes, wide.sectors) == (1, 16, 16, 8)
    assert sites[9, "shared", "write"].bytes == 16
    assert sites[16, "global", "atomic"].lanes == 16


WRONG = [
    ('asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "l"(x + 1));', "no multiple"),
    ('asm volatile("ld.global.f32 %0, [%1];" : "=f"(a) : "l"(tile));', "address in shared memory"),
    ('asm volatile("ld.shared.f32 %0, [%1];" : "=f"(a) : "l"(x));', "none of shared memory"),
    ('asm volatile("ld.shared.f32 %0, [%1];" : "=f"(a) : "r"(240000));', "none of shared memory"),
    ('asm volatile("cp.async.cg.shared.global [%0], [%1], 8;" :: "r"(s), "l"(x));', "copies 16 bytes"),
    ('asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 8;" :: "r"(s), "l"(x));', "more bytes than it copies"),
    ('if (t < 32) asm volatile("bar.sync 1;");', "32 threads wait at a barrier with a number"),
    ('asm volatile("bar.sync 1, 48;");', "whole warps can meet"),
    ('if (t < 32) asm volatile("bar.sync 16, 32;");', "barrier 16"),
    ('asm volatile("bar.sync 3, %0;" :: "r"(t < 32 ? 32 : 64));', "never come"),
    ('asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(s + 2));', "no multiple"),
    (
        'if (t < 16) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, _, _, _}, [%1];" : "=r"(v) : "r"(s));',
        "32 lanes",
    ),
    ('asm volatile("trap;");', "trap"),
]


@pytest.mark.parametrize("which", range(len(WRONG)))
def test_wrong_use_is_a_fault(run, which):
    head = "__global__ void k(const float* x, float* out, int which) { __shared__ __align__(16) float tile[64];"
    head += " int t = threadIdx.x; unsigned v = 0, s = (unsigned)__cvta_generic_to_shared(tile); float a = 0, b = 0;"
    cases = "".join(f"\n  if (which == {n}) {{ {body} }}" for n, (body, _) in enumerate(WRONG))
    with pytest.raises(DeviceFault, match=WRONG[which][1]):
        run(
            f"{head}{cases}\n  out[t] = a + b + v;\n}}", "k", 1, 64,
            x=np.zeros(64, "f4"), out=np.zeros(64, "f4"), which=which,
        )  # fmt: skip


PIPELINE = """
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" \\
                                    ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory")
__global__ void k(const float* x, float* out) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  COPY(&stage[0][t], x + t);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int s = 0; s < 4; ++s) {
    if (s + 1 < 4) COPY(&stage[(s + 1) % 2][t], x + 64 * (s + 1) + t);
    asm volatile("cp.async.commit_group;\\n" ::: "memory");
    asm volatile("cp.async.wait_group PRIOR;\\n" ::: "memory");
    BARRIER
    out[64 * s + t] = stage[s % 2][63 - t];
    __syncthreads();
  }
}"""


def piped(prior="1", barrier="__syncthreads();"):
    return PIPELINE.replace("PRIOR", prior).replace("BARRIER", barrier)


def test_two_stages_of_asynchronous_copies(run, record):
    x = np.arange(256, dtype="f4") + 1
    right = x.reshape(4, 64)[:, ::-1].ravel()
    arguments = {"x": x, "out": np.zeros(256, "f4")}
    assert (run(piped(), "k", 1, 64, **arguments)["out"] == right).all()
    assert record(piped(), "k", 1, 64, **arguments).faults == ()
    assert np.isnan(run(piped("2"), "k", 1, 64, **arguments)["out"]).any()
    late = record(piped(barrier=""), "k", 1, 64, **arguments)
    assert FaultKind.RACE in {fault.kind for fault in late.faults}


def test_bytes_beyond_the_source_are_zeros(run):
    source = """
__global__ void k(const int* x, int* out) {
  __shared__ __align__(16) int tile[128]; int t = threadIdx.x;
  unsigned at = (unsigned)__cvta_generic_to_shared(tile + 4 * t);
  int bytes = t < 5 ? 16 : t == 5 ? 8 : 0;
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 7; @p cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %4; }"
               ::"r"(at), "l"(x + 4 * (t < 6 ? t : 0)), "n"(16), "r"(t), "r"(bytes));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  for (int i = 0; i < 4; i++) out[4 * t + i] = t == 7 ? -1 : tile[4 * t + i];
}"""
    x = np.arange(22).astype("i4") + 1
    out = run(source, "k", 1, 16, x=np.append(x, [0, 0]).astype("i4"), out=np.zeros(64, "i4"))["out"]
    want = np.zeros(64, "i4")
    want[:22] = x
    want[28:32] = -1
    assert (out == want).all()


GEMM = """
#include <cuda_fp16.h>
// 32 x 16 of C by two warps, tiles of 16 along k: rows of A and of B transposed, ldmatrix of both, sums in registers.
__global__ void gemm(const __half* a, const __half* b, float* c, int n, int k) {
  __shared__ __align__(16) __half sa[32][24], sb[16][24];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  const __half* rows = a + blockIdx.y * 32 * k;
  const __half* columns = b + blockIdx.x * 16 * k;
  float d[2][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    unsigned to = (unsigned)__cvta_generic_to_shared(&sa[t / 2][t % 2 * 8]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(rows + t / 2 * k + k0 + t % 2 * 8));
    if (t < 32) {
      to = (unsigned)__cvta_generic_to_shared(&sb[t / 2][t % 2 * 8]);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(columns + t / 2 * k + k0 + t % 2 * 8));
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    FIRST
    unsigned x[4], y[4];
    unsigned at = (unsigned)__cvta_generic_to_shared(&sa[warp * 16 + lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
    at = (unsigned)__cvta_generic_to_shared(&sb[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(at));
    for (int j = 0; j < 2; j++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                   "{%0, %1, %2, %3};"
                   : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
                   : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * j]), "r"(y[2 * j + 1]));
    SECOND
  }
  for (int j = 0; j < 2; j++)
    for (int half = 0; half < 2; half++) {
      int row = blockIdx.y * 32 + warp * 16 + lane / 4 + 8 * half, column = blockIdx.x * 16 + j * 8 + lane % 4 * 2;
      asm volatile("st.global.v2.f32 [%0], {%1, %2};"
                   ::"l"(c + row * n + column), "f"(d[j][2 * half]), "f"(d[j][2 * half + 1]) : "memory");
    }
}"""


def multiplied(device, first="__syncthreads();", second="__syncthreads();"):
    rng = np.random.default_rng(7)
    a, b = rng.integers(-4, 5, (64, 48)).astype("f2"), rng.integers(-4, 5, (32, 48)).astype("f2")
    source = GEMM.replace("FIRST", first).replace("SECOND", second)
    made = device(source, "gemm", (2, 2), 64, a=a.ravel(), b=b.ravel(), out=np.zeros(64 * 32, "f4"), n=32, k=48)
    return made, (a.astype("f4") @ b.astype("f4").T).ravel()


def test_a_product_by_fragments(run, record):
    got, want = multiplied(lambda s, e, g, *rest, **more: run(s, e, (*g, 1), *rest, **more))
    assert (got["out"] == want).all()
    profile, _ = multiplied(lambda s, e, g, *rest, **more: record(s, e, (*g, 1), *rest, **more))
    assert profile.faults == ()
    assert profile.launches[0].tensor_operations == 4 * 2 * 3 * 2 * 2.0 * 16 * 8 * 16
    for missing in ({"first": ""}, {"second": ""}):
        faulty, _ = multiplied(lambda s, e, g, *rest, **more: record(s, e, (*g, 1), *rest, **more), **missing)
        assert FaultKind.RACE in {fault.kind for fault in faulty.faults}


@cache
def watched(source):
    image = HostToolchain(watched=True).compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))))
    assert isinstance(image, Image), image
    return image


def test_a_product_by_fragments_in_every_order(host):
    rng = np.random.default_rng(9)
    a, b = rng.integers(-4, 5, (64, 48)).astype("f2"), rng.integers(-4, 5, (32, 48)).astype("f2")
    source = GEMM.replace("FIRST", "__syncthreads();").replace("SECOND", "__syncthreads();").replace("gemm", "k")
    sizes = (ScalarValue("int32", 32), ScalarValue("int32", 48))
    launch = ConcreteLaunch("k", (2, 2, 1), (64, 1, 1), 0, ("a", "b", "c", *sizes))
    for order in ORDERS:
        buffers = [
            Buffer("a", a.ravel(), Role.IN), Buffer("b", b.ravel(), Role.IN),
            Buffer("c", np.zeros(64 * 32, "f4"), Role.OUT),
        ]  # fmt: skip
        faults, arrays = host.watch(watched(source), [launch], buffers, order)
        assert faults == ()
        assert (arrays["c"] == (a.astype("f4") @ b.astype("f4").T).ravel()).all()


SUM = """
__global__ void k(const int* x, int* out, int n) {
  __shared__ int parts[32];
  int sum = 0, t = threadIdx.x;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
    int v; asm("ld.global.nc.s32 %0, [%1];" : "=r"(v) : "l"(x + i)); sum += v;
  }
  asm volatile("redux.sync.add.s32 %0, %0, 0xffffffff;" : "+r"(sum));
  if (t % 32 == 0) parts[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    sum = t < blockDim.x / 32 ? parts[t] : 0;
    asm volatile("redux.sync.add.s32 %0, %0, 0xffffffff;" : "+r"(sum));
    if (t == 0) asm volatile("red.global.add.s32 [%0], %1;" :: "l"(out), "r"(sum) : "memory");
  }
}"""


def test_a_sum_in_every_order(host):
    x = (np.arange(1000) * 7 % 31 - 9).astype("i4")
    launch = ConcreteLaunch("k", (4, 1, 1), (128, 1, 1), 0, ("x", "out", ScalarValue("int32", 1000)))
    for order in ORDERS:
        buffers = [Buffer("x", x, Role.IN), Buffer("out", np.zeros(1, "i4"), Role.INOUT)]
        faults, arrays = host.watch(watched(SUM), [launch], buffers, order)
        assert faults == ()
        assert arrays["out"][0] == x.sum()


def test_reading_what_the_launch_writes_through_the_read_only_cache_is_told(host):
    source = """
__global__ void k(int* out, int* x) {
  int v, t = threadIdx.x; x[t] = t;
  asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(v) : "l"(x + t)); out[t] = v; }"""
    buffers = [Buffer("out", np.zeros(32, "i4"), Role.OUT), Buffer("x", np.zeros(32, "i4"), Role.INOUT)]
    launch = ConcreteLaunch("k", (1, 1, 1), (32, 1, 1), 0, ("out", "x"))
    faults, _ = host.watch(watched(source), [launch], buffers, ORDERS[0])
    assert faults
