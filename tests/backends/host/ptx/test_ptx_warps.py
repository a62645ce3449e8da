"""Instructions of a warp against what the PTX ISA says of each lane: shuffles, votes, reductions, fragments."""

from __future__ import annotations

import numpy as np
import pytest

LANES = np.arange(32)


def shuffled(mode, values, b, c):
    """PTX ISA, shfl.sync: the pseudocode of its semantics, lane by lane."""
    out, found = np.zeros(32, np.uint32), np.zeros(32, bool)
    for lane in range(32):
        segment, clamp, step = c >> 8 & 31, c & 31, int(b[lane]) & 31
        last = (lane & segment) | (clamp & ~segment & 31)
        j, good = {
            "up": (lane - step, lane - step >= last), "down": (lane + step, lane + step <= last),
            "bfly": (lane ^ step, lane ^ step <= last),
            "idx": ((lane & segment) | (step & ~segment & 31), ((lane & segment) | (step & ~segment & 31)) <= last),
        }[mode]  # fmt: skip
        if mode == "bfly":
            good = (lane ^ step) <= last
        out[lane], found[lane] = values[j] if good else values[lane], good
    return out, found


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(run, mode):
    cases = [(step, c) for step in (0, 1, 5, 8, 16, 31, 33) for c in (0, 31, 0x181F, 0x1C07, 0x1803, 0x1010)]
    lines = [
        f'  {{ unsigned d, q; asm volatile("{{ .reg .pred p; shfl.sync.{mode}.b32 %0|p, %2, %3, {c:#x}, -1; '
        f'selp.u32 %1, 1, 0, p; }}" : "=r"(d), "=r"(q) : "r"(x[t]), "r"({step} + t % 3)); out[{64 * n} + t] = d; '
        f"out[{64 * n + 32} + t] = q; }}"
        for n, (step, c) in enumerate(cases)
    ]
    source = "__global__ void k(const unsigned* x, unsigned* out) { int t = threadIdx.x;\n" + "\n".join(lines) + "\n}"
    values = (LANES * 7 + 3).astype("u4")
    out = run(source, "k", 1, 32, x=values, out=np.zeros(64 * len(cases), "u4"))["out"].reshape(-1, 2, 32)
    for (step, c), got in zip(cases, out, strict=True):
        want, found = shuffled(mode, values, step + LANES % 3, c)
        assert (got[0] == want).all(), (mode, step, hex(c))
        assert (got[1] == found).all(), (mode, step, hex(c))


def test_votes_matches_and_reductions(run):
    source = r"""
__global__ void k(const int* x, unsigned* out) {
  int t = threadIdx.x, v = x[t];
  unsigned r[12]; int s[2];
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(r[0]) : "r"(v));
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, -99; vote.sync.all.pred q, p, -1; selp.u32 %0, 1, 0, q; }"
               : "=r"(r[1]) : "r"(v));
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; vote.sync.any.pred q, !p, -1; selp.u32 %0, 1, 0, q; }"
               : "=r"(r[2]) : "r"(v));
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; vote.sync.uni.pred q, p, -1; selp.u32 %0, 1, 0, q; }"
               : "=r"(r[3]) : "r"(v));
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(r[4]) : "r"(v % 3));
  asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %1, -1; @p add.u32 %0, %0, 1; }" : "=r"(r[5]) : "r"(7));
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(s[0]) : "r"(v));
  asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(s[1]) : "r"(v));
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r[6]) : "r"(v));
  asm volatile("redux.sync.xor.b32 %0, %1, 0xffffffff;" : "=r"(r[7]) : "r"(v));
  asm volatile("activemask.b32 %0;" : "=r"(r[8]));
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(r[9]));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r[10]));
  asm("mov.u32 %0, %%tid.x;" : "=r"(r[11]));
  for (int n = 0; n < 12; n++) out[n * 32 + t] = r[n];
  out[12 * 32 + t] = s[0], out[13 * 32 + t] = s[1];
}"""
    x = (LANES * LANES * 37 % 61 - 20).astype("i4")
    out = run(source, "k", 1, 32, x=x, out=np.zeros(14 * 32, "u4"))["out"].reshape(14, 32)
    third = np.sign(x) * (np.abs(x) % 3)
    want = [
        sum(1 << i for i in range(32) if x[i] > 0), 1, 1, 0,
        [sum(1 << j for j in range(32) if third[j] == third[i]) for i in range(32)], 0, max(x.view("u4")),
        np.bitwise_xor.reduce(x.view("u4")), 0xFFFFFFFF, (LANES == 0), (1 << LANES) - 1, LANES,
        x.sum().view("u8") & 0xFFFFFFFF, int(x.min()) & 0xFFFFFFFF,
    ]  # fmt: skip
    for n, expected in enumerate(want):
        assert (out[n] == np.asarray(expected).astype("u4")).all(), n


def places(kind, shape, bits):
    """Row and column of each element of all lanes, by the formulas beside the PTX ISA's figures of fragments."""
    m, n, k = shape
    group, inside = LANES // 4, LANES % 4
    run = 2 if kind == "C" else max(32 // bits, 1)
    count = {"A": m * k, "B": n * k, "C": m * n}[kind] // 32
    found = []
    for e in range(count):
        part, within = divmod(e, run)
        if kind == "B":  # k runs along a lane's registers
            found.append((inside * run + within + part * 4 * run, group))
        elif kind == "C":
            found.append((group + 8 * (part % 2), inside * 2 + within))
        else:  # A: register 0 is the upper left, 1 below it, 2 to the right, 3 below that; of 8 rows, left to right
            low, right = (part % 2, part // 2) if m == 16 else (0, part)
            found.append((group + 8 * low, inside * run + within + right * 4 * run))
    return found


SHAPES = [
    ("m16n8k16", "f16", "f16", "f32"), ("m16n8k8", "f16", "f16", "f32"), ("m16n8k16", "f16", "f16", "f16"),
    ("m16n8k8", "f16", "f16", "f16"), ("m16n8k16", "bf16", "bf16", "f32"), ("m16n8k8", "bf16", "bf16", "f32"),
    ("m16n8k8", "tf32", "tf32", "f32"), ("m16n8k4", "tf32", "tf32", "f32"), ("m16n8k16", "s8", "s8", "s32"),
    ("m16n8k32", "s8", "s8", "s32"), ("m16n8k32", "u8", "s8", "s32"), ("m16n8k32", "s8", "u8", "s32"),
    ("m8n8k16", "s8", "s8", "s32"), ("m16n8k32", "u8", "u8", "s32"), ("m8n8k4", "f64", "f64", "f64"),
    ("m16n8k4", "f64", "f64", "f64"), ("m16n8k8", "f64", "f64", "f64"), ("m16n8k16", "f64", "f64", "f64"),
]  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "f64": 64, "f32": 32, "s32": 32}


def raw(values, type):
    """Numbers as words of the type."""
    if type == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kinds = {"f16": "f2", "tf32": "f4", "f32": "f4", "s8": "i1", "u8": "u1", "f64": "f8", "s32": "i4"}
    return np.ascontiguousarray(values.astype(kinds[type])).view(f"u{BITS[type] // 8}")


def packed(matrix, kind, shape, type):
    """Each lane's registers, of 32 or 64 bits."""
    elements = np.stack([raw(matrix[row, column], type) for row, column in places(kind, shape, BITS[type])], axis=1)
    return np.ascontiguousarray(elements).view("u8" if type == "f64" else "u4")


@pytest.mark.parametrize(("name", "a", "b", "c"), SHAPES, ids=lambda x: str(x))
def test_products_of_fragments(run, name, a, b, c):
    shape = tuple(int(x) for x in name[1:].replace("n", " ").replace("k", " ").split())
    m, n, k = shape
    rng = np.random.default_rng(m * n * k)
    draw = {"s8": (-128, 128), "u8": (0, 256)}
    left = rng.integers(*draw.get(a, (-8, 9)), (m, k)).astype("f8")
    right = rng.integers(*draw.get(b, (-8, 9)), (k, n)).astype("f8")
    before = rng.integers(-20, 20, (m, n)).astype("f8")
    words = [packed(left, "A", shape, a), packed(right, "B", shape, b), packed(before, "C", shape, c)]
    counts = [w.shape[1] for w in words]
    kind, holder = ("d", "double") if c == "f64" else ("f", "float") if c == "f32" else ("r", "unsigned")
    factor = ("d", "double") if a == "f64" else ("r", "unsigned")
    total = sum(counts)
    names = iter(range(counts[2] + total))
    lists = ["{" + ", ".join(f"%{next(names)}" for _ in range(x)) + "}" for x in (counts[2], *counts)]
    operands = [f'"{factor[0]}"(v[{i}])' for i in range(counts[0] + counts[1])]
    operands += [f'"{kind}"(w[{i}])' for i in range(counts[2])]
    outputs = ", ".join(f'"={kind}"(d[{i}])' for i in range(counts[2]))
    source = f"""
__global__ void k(const {factor[1]}* x, const {holder}* y, {holder}* out) {{
  {factor[1]} v[{counts[0] + counts[1]}]; {holder} w[{counts[2]}], d[{counts[2]}];
  for (int i = 0; i < {counts[0] + counts[1]}; i++) v[i] = x[threadIdx.x * {counts[0] + counts[1]} + i];
  for (int i = 0; i < {counts[2]}; i++) w[i] = y[threadIdx.x * {counts[2]} + i];
  asm volatile("mma.sync.aligned.{name}.row.col.{c}.{a}.{b}.{c} {", ".join(lists)};"
               : {outputs} : {", ".join(operands)});
  for (int i = 0; i < {counts[2]}; i++) out[threadIdx.x * {counts[2]} + i] = d[i];
}}"""
    x = np.concatenate(words[:2], axis=1).view("f8" if a == "f64" else "u4")
    y = words[2].view({"f64": "f8", "f32": "f4"}.get(c, "u4"))
    out = run(source, "k", 1, 32, x=x.ravel(), y=y.ravel(), out=np.zeros_like(y).ravel())["out"]
    want = packed(left @ right + before, "C", shape, c).view(y.dtype)
    assert (out.reshape(y.shape).view("u1") == want.view("u1")).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_of_shared_memory(run, count, transposed):
    """Lane l's word of matrix i: row l / 4, elements 2 * (l % 4) and the next; of the transpose with .trans."""
    trans = ".trans" if transposed else ""
    names = ", ".join(f"%{n}" for n in range(count))
    outputs, inputs = (", ".join(f'"{mark}"(v[{n}])' for n in range(count)) for mark in ("=r", "r"))
    stored = ", ".join(f"%{n + 1}" for n in range(count))
    source = f"""
__global__ void k(const unsigned short* x, unsigned* out, unsigned short* out2) {{
  __shared__ __align__(16) unsigned short tile[{count * 64} + 8], back[{count * 64}];
  int t = threadIdx.x;
  for (int i = t; i < {count * 64}; i += 32) tile[i] = x[i];
  __syncthreads();
  unsigned v[{count}], at = (unsigned)__cvta_generic_to_shared(tile + t % {8 * count} * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%{count}];" : {outputs} : "r"(at));
  for (int i = 0; i < {count}; i++) out[i * 32 + t] = v[i];
  unsigned to = (unsigned)__cvta_generic_to_shared(back + t % {8 * count} * 8);
  asm volatile("stmatrix.sync.aligned.m8n8.x{count}{trans}.shared::cta.b16 [%0], {{{stored}}};" :: "r"(to), {inputs});
  __syncthreads();
  for (int i = t; i < {count * 64}; i += 32) out2[i] = back[i];
}}"""
    x = np.arange(count * 64).astype("u2") * 3 + 1
    got = run(source, "k", 1, 32, x=x, out=np.zeros(count * 32, "u4"), out2=np.zeros(count * 64, "u2"))
    matrices = x.reshape(count, 8, 8)
    seen = matrices.transpose(0, 2, 1) if transposed else matrices
    want = [
        [int(seen[i, t // 4, 2 * (t % 4)]) | int(seen[i, t // 4, 2 * (t % 4) + 1]) << 16 for t in range(32)]
        for i in range(count)
    ]
    assert (got["out"].reshape(count, 32) == want).all()
    assert (got["out2"] == x).all()


def test_a_transposed_matrix_of_registers(run):
    source = """
__global__ void k(const unsigned* x, unsigned* out) {
  unsigned d; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(x[threadIdx.x]));
  out[threadIdx.x] = d;
}"""
    x = np.arange(64).astype("u2")
    out = run(source, "k", 1, 32, x=x.view("u4"), out=np.zeros(32, "u4"))["out"]
    assert (out.view("u2").reshape(8, 8) == x.reshape(8, 8).T).all()
