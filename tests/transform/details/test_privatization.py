"""Slices of shared arrays that are a thread's own become arrays of the thread's."""

from __future__ import annotations

import pytest

from fsr.transform.details.privatization import PrivatizeShared
from tests.transform.conftest import subject_of

ACTION = PrivatizeShared()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 16}
// [args]
// x = {role = "in", dtype = "uint32", shape = ["n * 32 * 16"]}
// key = {role = "in", dtype = "uint32", shape = [16]}
// y = {role = "out", dtype = "uint32", shape = ["n * 32 * 16"]}
// n = {value = "n"}
// [launch]
// grid = "n"
// block = 32
// ///
"""
SIGNATURE = "__global__ void k(const unsigned *x, const unsigned *key, unsigned *y, int n)"
BEFORE = """#define THREADS 32
#define ROTATE(v, c) (v << c) | (v >> (32 - c))
#define QUARTER(s, a, b, c, d) s[a] += s[b]; s[d] ^= s[a]; s[d] = ROTATE(s[d], 16); s[c] += s[d]; s[b] ^= s[c];
__device__ void quarter(unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
  a += b; d ^= a; d = (d << 16) | (d >> 16); c += d; b ^= c;
}
__device__ void mix(unsigned *v, int a, int b, int c) {
  for (int turn = 0; turn < 3; turn++) { v[a] += v[b] ^ v[c + turn]; v[c] = ROTATE(v[c], 7); }
}
"""
ATOMIC = BEFORE + "__device__ void posted(unsigned &a) { atomicAdd(&a, 1u); }\n"
AT = "int t = threadIdx.x, at = (blockIdx.x * THREADS + t) * 16;\n"
FILL = "for (int i = 0; i < 16; i++) own[i] = x[at + i];\n"
DRAIN = "for (int i = 0; i < 16; i++) y[at + i] = own[i];\n"
ROUNDS = """for (int r = 0; r < n; r++) { QUARTER(own, 0, 4, 8, 12); QUARTER(own, 1, 5, 9, 13);
  quarter(own[0], own[5], own[10], own[15]); }\n"""
BEHIND = """__shared__ unsigned all[16 + THREADS * 16]; unsigned *state = &all[0];
if (threadIdx.x < 16) state[threadIdx.x] = key[threadIdx.x];
__syncthreads();
unsigned *rest = &all[16]; unsigned *own = &rest[threadIdx.x * 16];
for (int i = 0; i < 16; i++) own[i] = state[i] + x[at + i];
"""


def kernel(body: str, before: str = BEFORE, block: str = "32") -> str:
    """The text of a kernel with its contract."""
    return f"{HEAD.replace('block = 32', f'block = {block}')}{before}{SIGNATURE} {{\n{body}}}\n"


OWN = {
    "a pointer, behind what all use": (
        AT + BEHIND + ROUNDS + DRAIN, ["__shared__ unsigned all[16];", "unsigned own[16];"], ["rest"]),
    "a pointer to a run": (
        AT + "__shared__ unsigned all[THREADS * 16]; unsigned *own = all + t * 16;\n" + FILL + ROUNDS + DRAIN,
        ["unsigned own[16];"], ["__shared__"]),
    "rows of the array": (
        AT + "__shared__ unsigned all[THREADS][17]; unsigned *own = all[t];\n" + FILL + ROUNDS + DRAIN,
        ["unsigned own[16];"], ["__shared__"]),
    "by index": (
        AT + "__shared__ unsigned a[THREADS * 16];\n"
        + (FILL + DRAIN).replace("own[i]", "a[t * 16 + i]").replace("y[at + i] =", "y[at + i] = a[t * 16 + 15 - i] +"),
        ["unsigned a_own[16];", "a_own[i]", "a_own[15 - i]"], ["__shared__"]),
    "by two indices": (
        AT + "__shared__ unsigned a[THREADS][16];\n" + (FILL + DRAIN).replace("own[i]", "a[threadIdx.x][i]"),
        ["a_own[i]"], ["__shared__"]),
    "every so many": (
        AT + "__shared__ unsigned a[16][THREADS + 1];\n" + (FILL + DRAIN).replace("own[i]", "a[i][t]"),
        ["a_own[i]"], ["__shared__"]),
    "every so many, flat": (
        AT + "__shared__ unsigned a[16 * THREADS];\n" + (FILL + DRAIN).replace("own[i]", "a[i * blockDim.x + t]"),
        ["a_own[i]"], ["__shared__"]),
    "from the end on": (
        AT + "__shared__ unsigned a[THREADS * 16]; unsigned *own = &a[t * 16];\n" + FILL
        + "for (int i = 14; i >= 0; i--) own[i] += own[i + 1];\n" + DRAIN, ["unsigned own[16];"], ["__shared__"]),
    "given to functions": (
        AT + BEHIND + "for (int r = 0; r < n; r++) { mix(own, 0, 4, 8); mix(own, 1, 5, 9); }\n" + DRAIN,
        ["unsigned own[16];", "mix(own, 0, 4, 8);"], ["rest"]),
    "what all use behind it": (
        AT + "__shared__ unsigned a[THREADS * 16 + 1]; unsigned *own = &a[t * 16];\n"
        "if (t == 0) a[THREADS * 16] = key[3]; __syncthreads();\n" + FILL + "own[3] += a[THREADS * 16];\n" + DRAIN,
        ["unsigned own[16];", "a[THREADS * 16 + 1]"], []),
}  # fmt: skip
A = "__shared__ unsigned a[THREADS * 16]; unsigned *own = &a[t * 16];\n"
SHARED = {
    "a neighbour's": AT + A + FILL + "__syncthreads(); own[1] += a[(t ^ 1) * 16];\n" + DRAIN,
    "one too many": AT + A + FILL + "for (int i = 0; i < 17; i++) own[i] += 1;\n" + DRAIN,
    "runs that overlap": AT + A.replace("&a[t * 16]", "&a[t * 15]") + FILL + DRAIN,
    "what all use reaches into it": AT + BEHIND.replace("threadIdx.x < 16", "threadIdx.x < 17") + DRAIN,
    "an index of the data": AT + A + FILL + "own[x[at] & 15] += 1;\n" + DRAIN,
    "a loop of any length": AT + A + FILL + "for (int i = 0; i < n; i++) own[i] += 1;\n" + DRAIN,
    "an index that changes": AT + A + FILL + "for (int i = 0; i < 8; i++) { own[i] += 1; i++; }\n" + DRAIN,
    "the pointer moves": AT + A + FILL + "own += 0;\n" + DRAIN,
    "set in each turn": AT + A.split(" uns")[0] + " unsigned c = 0; for (int r = 0; r < 2; r++) { unsigned *own = "
    "&a[t * 16]; if (r == 0) { " + FILL + "} c += own[r]; } y[at] = c;\n",
    "its address is given away": AT + A + FILL + "atomicAdd(&own[3], 1u);\n" + DRAIN,
    "to a function's atomics": AT + A + FILL + "posted(own[3]);\n" + DRAIN,
    "as other words": AT + A + FILL + "uint4 *four = (uint4 *)own; four[1] = four[0];\n" + DRAIN,
    "volatile": AT + A.replace("__shared__", "volatile __shared__").replace(" unsigned *", " volatile unsigned *")
    + FILL + DRAIN,
    "verbatim": AT + A + FILL + "here: own[0] += 1;\n" + DRAIN,
    "too many": AT + "__shared__ unsigned a[THREADS * 80]; unsigned *own = &a[t * 80];\n"
    "for (int i = 0; i < 80; i++) own[i] = i + t;\n" + DRAIN,
    "a function reads on": AT + A + FILL + "mix(own, 2, 3, 14);\n" + DRAIN,
    "a function's index of the data": AT + A + FILL + "mix(own, x[at], 3, 4);\n" + DRAIN,
}  # fmt: skip


@pytest.mark.parametrize(("body", "there", "gone"), OWN.values(), ids=OWN)
def test_a_threads_slice_is_its_own_array(runner, body, there, gone):
    subject = subject_of(kernel(body))
    assert "all" in body or "a[" in body
    name = "all" if "all[" in body else "a"
    assert [m.name for m in ACTION.moves(subject)] == [f"privatize-shared@shared:{name}"]
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    code = made.source[made.source.index("__global__") :]
    assert [text for text in there if text not in code] == []
    assert [text for text in gone if text in code] == []
    runner.check(subject, made, {"n": 1}, {"n": 5})
    assert runner.faults(made, subject.contract, {"n": 2}) == []


def test_threads_of_two_dimensions_have_their_slices(runner):
    body = AT.replace("threadIdx.x", "threadIdx.y * blockDim.x + threadIdx.x") + A + FILL + ROUNDS + DRAIN
    subject = subject_of(kernel(body, block="[8, 4]"))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    runner.check(subject, made, {"n": 3})
    columns = body.replace("&a[t * 16]", "&a[threadIdx.x * 16]")  # four threads a slice
    assert list(ACTION.moves(subject_of(kernel(columns, block="[8, 4]")))) == []


def dynamic(size: str, before: str = BEFORE) -> str:
    """The kernel whose shared array has its extent from the launch."""
    body = AT + BEHIND.replace("__shared__ unsigned all[16 + THREADS * 16]", "extern __shared__ unsigned all[]")
    return kernel(body + ROUNDS + DRAIN, before).replace("// block = 32", f"// block = 32\n// shared_bytes = {size}")


def test_dynamic_memory_of_one_size_counts(runner):
    subject = subject_of(dynamic("2112"))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert "    __shared__ unsigned all[16];" in made.source
    assert made.plan.launches[0].shared_bytes == "0"
    runner.check(subject, made, {"n": 1}, {"n": 5})
    other = BEFORE + "__device__ unsigned seen() { extern __shared__ unsigned words[]; return words[0]; }\n"
    called = dynamic("2112", other).replace("for (int r = 0", "if (n == 0) y[0] = seen();\nfor (int r = 0")
    for text in (dynamic('"64 * n + 2112"'), dynamic("65536"), called):
        assert list(ACTION.moves(subject_of(text))) == []


def test_loops_beside_stay_as_they_are():
    subject = subject_of(kernel(OWN["a pointer, behind what all use"][0]))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert made.source.count("#pragma unroll") == 2
    assert "#pragma unroll\n    for (int r" not in made.source


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_others_stay_shared(body):
    assert [m.name for m in ACTION.moves(subject_of(kernel(body, ATOMIC)))] == []
