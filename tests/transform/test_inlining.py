"""Functions written out where a kernel calls them compute the same, and what may not be written out stays a call."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from fsr.source.emit import emit_kernel
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import replace_kernel
from fsr.transform.details.unroll import Unroll
from fsr.transform.inlining.action import Inlining
from fsr.transform.inlining.calls import inlined

CONTRACT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// m = {min = 1, max = 64, timed = 32}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n", "m"]}
// y = {role = "inout", dtype = "int32", shape = ["n", 8]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
HEAD = "__global__ void k(const int *x, int *y, int n, int m) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
GUARD = "  if (i >= n) return;\n"


def text(functions: str, body: str) -> str:
    return f"{CONTRACT}{functions}\n{HEAD}{GUARD}{body}\n}}\n"


SUM = (
    "__device__ int total(const int *r, int count) { int s = 0; for (int j = 0; j < count; j++) s += r[j]; return s; }"
)
WRITTEN = {
    "a value": (SUM, "y[8 * i] = 3 + total(x + i * m, m) * 2;"),
    "nothing": (
        "__device__ void store(int *to, int a) { for (int j = 0; j < 8; j++) to[j] = a + j; }", "store(y + 8 * i, i);",
    ),
    "a local array": (
        "__device__ void turn(int *v) { int t = v[0]; v[0] = v[1]; v[1] = t; for (int j = 0; j < 2; j++) v[j] *= 3; }",
        "int v[2] = {i, 7}; turn(v); y[8 * i] = v[0]; y[8 * i + 1] = v[1];",
    ),
    "references": (
        "__device__ void put(int &a, const int *r, int &b) { a += r[0]; for (int j = 0; j < 3; j++) b += a * j; }",
        "int p = i, q = 2; put(p, x + i * m, q); put(q, x, y[8 * i]); y[8 * i + 1] = p;",
    ),
    "early returns": (
        "__device__ int first(const int *r, int at) { if (at < 2) { return r[0]; } int t = r[0] + 1; "
        "if (t > 2) return t; else if (t < -1) return -t; for (int j = 0; j < 2; j++) t += j; return t; }",
        "y[8 * i] = first(x + i * m, i);",
    ),
    "returns in loops": (
        "__device__ int first(const int *r, int c)\n"
        "{ int s = 0; for (int j = 0; j < c; j++) { int left = r[j]; if (left > 1) return j + s;\n"
        "for (int t = 0; t < 2; t++) { s += t; if (r[j] + t < -1) { return s * 7; } if (r[j] == 0) continue; s++; } }\n"
        "while (s > 2) { if (s % 5 == 0) return 9; s--; } return c; }\n"
        "__device__ bool last(const int *r, int c, int *to)\n"
        "{ for (int j = c - 1; j >= 0; j--) { if (r[j] < 0) { to[2] = j; return true; } } to[3] += 1; return false; }\n"
        "__device__ void put(int *to, int c)\n"
        "{ for (int j = 0; j < 8; j++) { do { if (j == c) return; to[j] += 2; } while (to[j] < 3); } to[0] = 1; }",
        "put(y + 8 * i, i % 11); if (last(x + i * m, m, y + 8 * i)) { y[8 * i + 1] = 5; } "
        "int v = first(x + i * m, m); y[8 * i] += v;",
    ),
    "a template": (
        "template <class T, int N> __device__ T most(const T *r, int c) { T b = r[0]; "
        "for (int j = 0; j < c; j += N) { T v = (T)r[j]; b = v > b ? v : b; } return b; }\n"
        "template <typename T> __device__ void copy(T *to, const T *from, int c)\n"
        "{ for (int j = 0; j < c; j++) { T v = from[j]; to[j] = v; } }",
        "y[8 * i] = most<int, 2>(x + i * m, m); copy(y + 8 * i + 1, x + i * m, m < 7 ? m : 7);",
    ),
    "names that the kernel has": (
        "__device__ int total(const int *x, int i, int m)\n"
        "{ int n = 0; for (int j = 0; j < m; j++) n += x[i * m + j]; return n; }",
        "int j = 5; y[8 * i] = total(x, i, m) + j + n; y[8 * i + 1] = total(x, 0, m);",
    ),
    "names that come of others": (
        "__device__ int total(const int *x, int c)\n"
        "{ int s2 = 3; for (int j = 0; j < c; j++) { int s = x[j]; s2 += s * s2; } return s2; }",
        "int s = 5; y[8 * i] = total(x + i * m, m) + s;",
    ),
    "narrower parameters": (
        "__device__ int cut(const int *r, unsigned char c)\n"
        "{ int s = c; for (int j = 0; j < 2; j++) s += r[0]; return s; }",
        "y[8 * i] = cut(x + i * m, 300 + i);",
    ),
    "functions of functions": (
        SUM + "__device__ void both(int *to, const int *r, int c)\n"
        "{ to[0] = total(r, c); to[1] = total(r, 1) + to[0]; }",
        "both(y + 8 * i, x + i * m, m);",
    ),
    "an argument that is changed": (
        "__device__ int last(const int *r, int c) { while (c > 1) { r++; c -= 1; } return *r; }",
        "int c = m; const int *r = x + i * m; y[8 * i] = last(r, c) + c + *r;",
    ),
    "in a loop": (SUM, "for (int j = 0; j < 3; j++) { int s = total(x, j % m); y[8 * i + j] += s; }"),
    "in a test": (SUM, "if (total(x + i * m, m) > 3) y[8 * i] = 1; else if (total(x, 1) > 0) y[8 * i] = 2;"),
}  # fmt: skip


def written(subject):
    (kernel,) = [k for n, k in parse_kernels(subject.candidate.source).items() if n == "k"]
    form = inlined(kernel, subject.candidate.source)
    return form, replace(
        subject.candidate, source=replace_kernel(subject.candidate.source, kernel, form), actions=("inlined",)
    )


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_out_computes_the_same(name, subject_from, runner) -> None:
    subject = subject_from(text(*WRITTEN[name]))
    form, changed = written(subject)
    assert not {"total(", "store(", "turn(", "put(", "first(", "most<", "copy(", "cut(", "both(", "last("} & set(
        emit_kernel(form).replace("(", "( ").split()
    )
    runner.check(subject, changed, {"n": 1, "m": 1}, {"n": 70, "m": 5}, {"n": 130, "m": 12})


STAYS = {
    "evaluated under a condition": (SUM, "y[8 * i] = m > 3 && total(x, m);"),
    "a loop's test": (SUM, "for (int j = 0; j < total(x, 1); j++) y[8 * i] += j;"),
    "beside another that may write": (
        "__device__ int bump(int *to) { for (int j = 0; j < 2; j++) to[0] += 1; return to[0]; }",
        "y[8 * i + 1] = y[8 * i] + bump(y + 8 * i);",
    ),
    "itself": (
        "__device__ int deep(const int *r, int c) { int s = r[0]; if (c > 0) { s += deep(r, c - 1); } return s; }",
        "y[8 * i] = deep(x + i * m, 2);",
    ),
    "a version of one of CUDA's": (
        "__device__ unsigned long atomicAdd(unsigned long *to, unsigned long v)\n"
        "{ for (int j = 0; j < 1; j++) v += *to; return v; }",
        "atomicAdd((unsigned long *)(y + 8 * i), 1ul);",
    ),
    "a name that means another variable here": (
        "__constant__ int table[4] = {1, 2, 3, 4};\n"
        "__device__ int at(const int *r) { int s = 0; for (int j = 0; j < 4; j++) s += table[j] * r[0]; return s; }",
        "int table = 3; y[8 * i] = at(x + i * m) + table;",
    ),
    "verbatim code": (
        '__device__ int odd(const int *r) { int s = r[0]; asm volatile("" : "+r"(s)); goto end; end: return s; }',
        "y[8 * i] = odd(x + i * m);",
    ),
    "of two definitions": (
        SUM + "__device__ int total(const int *r, long long count) { return r[count - 1]; }", "y[8 * i] = total(x, m);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_what_may_not_be_written_out_stays_a_call(name, subject_from) -> None:
    functions, body = STAYS[name]
    subject = subject_from(text(functions, body))
    (kernel,) = [k for n, k in parse_kernels(subject.candidate.source).items() if n == "k"]
    called = {"total", "bump", "find", "deep", "at", "odd", "atomicAdd"}
    form = inlined(kernel, subject.candidate.source)
    assert any(f"{c}(" in emit_kernel(form) for c in called)


PIECES = (
    "a += r[{k} % c];", "a = a * 3 + {k};", "for (int j = 0; j < {k}; j++) a += j * r[j % c];", "w[{k} % 4] += a;",
    "if (a > {k}) {{ b -= r[0]; }} else {{ b += {k}; }}", "{{ int t = b; b = a; a = t; }}",
    "for (int i = 0; i < 2; i++) {{ int n = i + a; w[i] += n; }}",
)  # fmt: skip


def test_composed_functions_compute_the_same(subject_from, runner) -> None:
    rng = random.Random(11)
    for _ in range(12):
        functions, calls = "", ""
        for f in range(3):
            body = " ".join(rng.choice(PIECES).format(k=rng.randrange(1, 6)) for _ in range(4))
            kind, end = rng.choice((("void", ""), ("int", f"if (a > 2) return b; a -= {f}; return a + b;")))
            inner = f"f{f - 1}(w, r, c, a, 2);" if f else ""
            head = f"__device__ {kind} f{f}(int *w, const int *r, int c, int &a, int b)"
            functions += f"{head} {{ {inner} {body} {end} }}\n"
            places = rng.choice(("own", "y + 8 * i")), rng.choice(("x", "x + i * m")), rng.choice(("7", "i"))
            call = f"f{f}({places[0]}, {places[1]}, m, v{f}, {places[2]})"
            plain = kind == "void" or rng.random() < 0.3
            calls += f"int v{f} = {f}; " + (f"{call}; " if plain else f"int t{f} = {call}; sum += t{f}; ")
        end = "y[8 * i + 7] = sum + v0 + v1 * v2 + own[1];"
        source = text(functions, f"int own[4] = {{0, 1, 2, 3}}, sum = 0; {calls} {end}")
        subject = subject_from(source)
        form, changed = written(subject)
        assert "f2(" not in emit_kernel(form)
        runner.check(subject, changed, {"n": 3, "m": 1}, {"n": 66, "m": 7})


def test_loops_of_functions_are_offered_what_loops_of_kernels_are(subject_from, runner) -> None:
    subject = subject_from(text(*WRITTEN["a value"]))
    assert not list(Unroll().moves(subject))
    action = Inlining(Unroll())
    moves = list(action.moves(subject))
    assert {m.region for m in moves} == {"loop:j"}
    for move in moves[:2]:
        changed = action.apply(subject, move)
        assert changed.actions == (move.name,)
        runner.check(subject, changed, {"n": 70, "m": 5})
