"""Atomic operations that stay in a block's shared memory, and all that might not."""

from __future__ import annotations

import random

import pytest

from fsr.analysis.block_atomics import outer_atomic
from fsr.records import Candidate, Launch, Plan, Scratch
from fsr.testgen.parts import alone, meeting

KERNEL = "__global__ void k(const int *x, float *out, int n) {{ {} }}\n"
ARRAYS = ("__shared__ float s[64];", "extern __shared__ float s[];", "__shared__ float s[4][16];")
POINTERS = (
    "",
    "float *p = s;",
    "float *const p = &s[0];",
    "float *__restrict__ p = s + 1;",
    "int *p = (int *)&s[n];",
    "int *p = reinterpret_cast<int *>(s + n);",
)
OPS = ("atomicAdd", "atomicMax", "atomicCAS")


def _shared_kernel(rng: random.Random) -> str:
    """Random atomics on shared memory, by its name, by a pointer into it, and on a single variable."""
    array, pointer = rng.choice(ARRAYS[:2]), rng.choice(POINTERS)
    name = "p" if pointer and rng.random() < 0.7 else "s"
    targets = [f"&{name}[x[threadIdx.x]]", f"{name} + threadIdx.x", name, f"(int *)&{name}[1]", "&count"]
    body = [array, "__shared__ int count;", pointer]
    for _ in range(rng.randrange(1, 4)):
        more = ", 0, 1" if (op := rng.choice(OPS)) == "atomicCAS" else ", 1"
        call = f"{op}({rng.choice(targets)}{more});"
        body.append(call if rng.random() < 0.5 else f"if (threadIdx.x < n) {{ {call} }}")
    return KERNEL.format(" ".join([*body, "__syncthreads(); out[blockIdx.x] = s[0];"]))


def test_atomics_on_a_blocks_own_memory_are_no_outer_ones():
    rng = random.Random(46)
    for _ in range(200):
        text = _shared_kernel(rng)
        assert outer_atomic(text) is None, text
    assert outer_atomic(KERNEL.format(f"{ARRAYS[2]} atomicAdd(&s[1][threadIdx.x], 1.0f);")) is None


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&out[0], 1.0f);",
        "__shared__ float s[8]; atomicAdd(&s[0], 1.0f); atomicAdd(out + n, s[0]);",
        "__shared__ float s[8]; float *p = n > 3 ? s : out; atomicAdd(p, 1.0f);",
        "__shared__ float s[8]; float *p = s; p = out; atomicAdd(p, 1.0f);",
        "__shared__ float s[8]; float *p = s; set(&p, out); atomicAdd(p, 1.0f);",
        "__shared__ float s[8]; float *p = s; set(p, out); atomicAdd(p, 1.0f);",
        "__shared__ float s[8]; { float *s = out; atomicAdd(s, 1.0f); }",
        "__shared__ float out2[8]; float *p = (float *)(size_t)n; atomicAdd(p, 1.0f);",
        "__shared__ float *s[8]; atomicAdd(s[0], 1.0f);",
        "float *s[2] = {out, out}; atomicAdd(s[0], 1.0f);",
        "__shared__ float s[8]; const float q = out[0]; float *const p = (float *)&q; atomicAdd(p, 1.0f);",
        "__shared__ float *p; p = out; atomicAdd(p, 1.0f);",
        "__shared__ int c; { int &c = *(int *)out; atomicAdd(&c, 1); }",
        "__shared__ float s[8]; float &r = out[0]; atomicAdd(&r, 1.0f);",
        "__shared__ float s[8]; auto add = [&](float *q) { atomicAdd(q, 1.0f); }; add(out);",
        "__shared__ float s[8]; atomicAdd(&s[0], 1.0f); cuda::atomic_ref<float> r(out[0]); r.fetch_add(1.0f);",
    ],
)
def test_what_may_be_other_memory_is_an_outer_one(body: str):
    assert outer_atomic(KERNEL.format(body)) is not None


@pytest.mark.parametrize(
    "head",
    [
        "__device__ void add(float *q) { atomicAdd(q, 1.0f); }\n",
        "#define ADD(q) atomicAdd(q, 1.0f)\n",
        "#define ADD(q) \\\n    atomicAdd(q, 1.0f)\n",
        "#define s out\n",
        "struct A { float *q; __device__ void add() { atomicAdd(q, 1.0f); } };\n",
    ],
)
def test_what_stands_outside_of_kernels_is_not_followed(head: str):
    assert outer_atomic(head + KERNEL.format("__shared__ float s[8]; atomicAdd(&s[0], 1.0f);")) is not None


def test_what_lets_blocks_meet_is_named():
    launch = Launch("k", ("1", "1", "1"), ("8", "1", "1"), "0", ("x", "out", "n"))
    shared = KERNEL.format("__shared__ float s[8]; atomicAdd(&s[0], 1.0f); out[blockIdx.x] = s[0];")
    one = Plan((launch,))
    assert alone(Candidate(shared, one))
    assert meeting(Candidate(KERNEL.format("atomicAdd(&out[0], 1.0f);"), one)).startswith("atomicAdd on out may change")
    assert meeting(Candidate(shared + "//\n" + 'void f() { asm("nop"); }', one)).startswith("asm may")
    assert meeting(Candidate(KERNEL.format("__threadfence();"), one)).startswith("__threadfence may")
    assert "2 launches" in meeting(Candidate(shared, Plan((launch, launch))))
    assert "scratch buffer w" in meeting(Candidate(shared, Plan((launch,), (Scratch("w", "float32", "n"),))))
