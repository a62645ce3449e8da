"""assume-aligned: records whole where their arrays are aligned, member by member where they are not."""

from __future__ import annotations

import pytest

from fsr.transform.vector.assume_aligned import AssumeAligned

ACTION = AssumeAligned()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 1024}
// [args]
// a = {role = "in", shape = ["n", LANES]PROMISE, dtype = "DTYPE"}
// y = {role = "inout", shape = ["n", LANES]PROMISE, dtype = "DTYPE"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
template <typename T> struct four { T x, y, z, w; };
struct three { float x, y, z; };
struct two { float re, im; };
typedef four<float> body;
__global__ void k(const TYPE *__restrict__ a, TYPE *y, int n) {
  __shared__ float held[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  held[threadIdx.x] = i < n ? a[i].FIRST : 0;
  __syncthreads();
  if (i >= n) return;
  BODY
}"""
FOUR = "TYPE v = a[i]; v.x += held[63 - threadIdx.x] + v.w; y[i].x = v.x; y[i].y = v.y; y[i].z = v.z; y[i].w = v.x;"
TWO = "TYPE v = a[i], u = y[i]; v.re = v.re * u.im + held[threadIdx.x]; y[i] = v;"


def text(body=FOUR, type_="body", lanes=4, dtype="float32", promise="", first="x"):
    made = TEXT.replace("BODY", body).replace("LANES", str(lanes)).replace("DTYPE", dtype).replace("PROMISE", promise)
    return made.replace("TYPE", type_).replace("FIRST", first)


@pytest.mark.parametrize("alignment", [4, 16, 256])
@pytest.mark.parametrize("given", [{}, {"body": TWO, "type_": "two", "lanes": 2, "first": "re"}], ids=["four", "two"])
def test_at_any_alignment(given, alignment, subject_from, close_outputs):
    subject = subject_from(text(**given))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "if (fsr_aligned<16>(a) && fsr_aligned<16>(y))" in changed.source
    assert changed.source.count("__shared__ float held[64]") == 1
    assert changed.source.count("__builtin_assume_aligned(") == 2
    close_outputs(subject, changed, [{"n": n} for n in (1, 63, 64, 130)], alignment=alignment)
    assert not list(ACTION.moves(subject_from(text(**given).split("template")[0] + changed.source)))


def test_what_is_promised_is_not_asked(subject_from, close_outputs):
    subject = subject_from(text(promise=", alignment = 16"))
    changed = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert "fsr_aligned" not in changed.source
    close_outputs(subject, changed, [{"n": 130}], alignment=16)


@pytest.mark.parametrize(
    "given",
    [
        {"body": "y[i] = a[i];", "type_": "float4"},
        {"body": "y[i].x = a[i].z + held[threadIdx.x];", "type_": "three", "lanes": 3},
        {"body": "a += i; a += i - i; y += i; y += i - i; y->x = a->w + held[threadIdx.x];"},
    ],
    ids=["built in", "of an odd size", "pointers that move on"],
)
def test_nothing_is_offered_where_it_would_be_nothing(given, subject_from):
    assert not list(ACTION.moves(subject_from(text(**given))))
