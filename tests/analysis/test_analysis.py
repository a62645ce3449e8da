"""What the analyses show, and above all what they do not claim."""

from __future__ import annotations

import pytest

from fsr.analysis.accesses import accesses
from fsr.analysis.definitions import definitions
from fsr.analysis.dependence import parallel
from fsr.analysis.functions import functions_of
from fsr.analysis.macros import constants
from fsr.analysis.polynomial import constant
from fsr.analysis.threads import global_ids, guard_of, negation
from fsr.analysis.uniform import Uniformity
from fsr.source.emit import emit_expr
from fsr.source.form import Call, Name
from fsr.source.parse import parse_kernels
from fsr.source.walk import loop_regions

PARAMS = "const float *x, float *y, int rows, int cols, int n"


def kernel(body: str, params: str = PARAMS):
    return parse_kernels(f"__global__ void k({params}) {{\n{body}\n}}")["k"]


def poly(text: str, body: str = ""):
    form = kernel(f"{body}\n y[0] = {text};")
    return definitions(form).poly(form.body[-1].value)


# ---------------------------------------------------------------- polynomials, definitions


def test_indices_are_polynomials_over_what_locals_stand_for():
    body = "int row = blockIdx.x * blockDim.x + threadIdx.x; const int base = row * cols;"
    found = poly("base + (size_t)n - 2 * (n - 1)", body)
    assert dict(found.terms) == {
        ("blockDim.x", "blockIdx.x", "cols"): 1,
        ("cols", "threadIdx.x"): 1,
        ("n",): -1,
        (): 2,
    }
    assert found.coefficient("cols") == poly("blockIdx.x * blockDim.x + threadIdx.x")
    assert found.coefficient("n") == constant(-1)
    assert found.depends_on(["threadIdx"])
    assert not found.depends_on(["rows"])
    assert poly("n << 3") == poly("8 * n")
    assert poly("n * n").coefficient("n") is None
    assert poly("n + n / 4").coefficient("n") is None
    assert poly("n - n").value == 0


@pytest.mark.parametrize(
    "body",
    [
        "int k = n; k = 3;", "int k = n; k++;", "int k = n; f(&k);", "int k = x[0];", "int k = g(n);",
        "int k = n; asm(\"mov %0, 1;\" : \"=r\"(k));", "int m = n; int k = m; m = 2;", "int k = n; { int k = 2; }",
        "unsigned char k = n;", "const bool k = n;", "int16_t k = n;",
        "int k; k = n;", "n = 3; int k = n;", "int k = n; for (k = 0; k < 3; k++) {}",
    ],
)  # fmt: skip
def test_what_may_change_is_not_written_out(body):
    assert "k" not in definitions(kernel(body)).values


def test_element_writes_do_not_change_the_pointer():
    known = definitions(kernel("y[n] = 1; *y = 2; atomicAdd(&y[n], 1.0f); const float *p = x + n; float q = p[0];"))
    assert known.changed == frozenset()
    assert emit_expr(known.expand(Name("p"))) == "x + n"
    assert "q" not in known.values


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("blockIdx.x * blockDim.x + threadIdx.x", "x"), ("threadIdx.y + blockDim.y * blockIdx.y", "y"),
        ("(int)(blockIdx.z * blockDim.z) + (int)threadIdx.z", "z"), ("blockIdx.x * 256 + threadIdx.x", "x"),
        ("blockIdx.x * blockDim.y + threadIdx.x", "x"), ("blockIdx.x * blockDim.x + threadIdx.y", None),
        ("blockIdx.x * blockDim.x + threadIdx.x + 1", None), ("threadIdx.x", None),
        ("2 * (blockIdx.x * blockDim.x + threadIdx.x)", None), ("blockIdx.x * gridDim.x + threadIdx.x", None),
    ],
)  # fmt: skip
def test_global_ids(text, axis):
    found = global_ids(kernel(f"int i = {text};"))
    assert [g.axis for g in found.values()] == ([] if axis is None else [axis])
    if axis and "blockDim." + axis not in text:
        assert found["i"].block_dim is not None


IDS = "int c = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y;"


@pytest.mark.parametrize(
    ("text", "bounds", "exact"),
    [
        ("if (c >= n) return; y[c] = 1;", [{"c": "n"}], True),
        ("if (r < rows && c < cols) { y[c] = 1; }", [{"r": "rows", "c": "cols"}], True),
        ("if (r >= rows || cols <= c) return;", [{"r": "rows", "c": "cols"}], True),
        ("if (!(c < n)) return;", [{"c": "n"}], True),
        ("if (c <= n) { y[c] = 1; }", [{"c": "n + 1"}], True),
        ("if (c < n && x[c] > 0) { y[c] = 1; }", [{"c": "n"}], False),
        ("if (c > n) { y[c] = 1; }", [], True),
        ("if (c < n) { y[c] = 1; } else { y[0] = 2; }", [], True),
    ],
)  # fmt: skip
def test_guards(text, bounds, exact):
    found = [g for s in kernel(IDS + text).body if (g := guard_of(s, frozenset(("r", "c")))) is not None]
    assert [{name: emit_expr(b) for name, b in g.bounds.items()} for g in found] == bounds
    assert all(g.exact == exact for g in found)


def test_negation_follows_de_morgan():
    test = kernel("if (a < 1 && !(b || c == 2)) return;").body[0].test
    assert emit_expr(negation(test)) == "a >= 1 || (b || c == 2)"


# ---------------------------------------------------------------- accesses


def test_accesses_say_what_happens_where():
    form = kernel("""
        __shared__ float s[4][8];
        for (int j = 0; j < n; j++) { if (j > 2) { y[j] += x[j + 1] * __ldg(&x[j]); } }
        s[1][2] = *x; atomicAdd(&y[0], 1.0f); g(y); float v = n > 1 ? x[7] : 0; v = *(x + n);
        *reinterpret_cast<float4 *>(y + 4) = make_float4(0, 0, 0, 0); y[n].q = x[0];
    """)
    found = [(a.kind, a.array, [emit_expr(i) for i in a.indices], len(a.loops), len(a.tests)) for a in accesses(form)]
    assert found == [
        ("read", "x", ["j + 1"], 1, 1), ("read", "x", ["j"], 1, 1), ("update", "y", ["j"], 1, 1),
        ("read", "x", ["0"], 0, 0), ("write", "s", ["1", "2"], 0, 0), ("atomic", "y", ["0"], 0, 0),
        ("opaque", "y", [], 0, 0), ("read", "x", ["7"], 0, 1), ("read", "x", ["n"], 0, 0),
        ("opaque", "y", [], 0, 0), ("read", "x", ["0"], 0, 0), ("update", "y", ["n"], 0, 0),
    ]  # fmt: skip


def test_an_atomic_on_a_member_may_do_anything_to_its_array():
    found = accesses(kernel("atomicAdd(&y[n].q, 1.0f);"))
    assert [(a.kind, a.array) for a in found] == [("opaque", "y")]


# ---------------------------------------------------------------- dependence


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("y[j] = x[j];", []), ("y[rows * cols + j] += x[j] * 2;", []), ("float t = x[j]; a += t * t;", ["a"]),
        ("atomicAdd(&y[n], x[j]);", []), ("for (int i = 0; i < n; i++) a += x[j * n + i];", ["a"]),
        ("y[j] = y[j + 1];", None), ("y[0] = x[j];", None), ("y[j * cols] = 1;", None), ("y[n - n] += 1;", None),
        ("b = x[j]; y[j] = b;", None), ("y[j] = x[j]; if (x[j] > 3) break;", None),
        ("__syncthreads(); y[j] = 1;", None),
        ("y[j] = g(x[j]);", None), ("if (j == n) return;", None), ("int q = atomicAdd(&m[0], 1);", None),
        ("for (int i = 0; i < n; i++) y[i] = j;", None), ("y[j + (int)x[j]] = 1;", None), ("j += 1;", None),
    ],
)  # fmt: skip
def test_loops_are_parallel_only_when_shown(body, result):
    form = kernel(f"float a = 0, b = 0; for (int j = 0; j < n; j++) {{ {body} }}", PARAMS + ", int *m")
    found = parallel(form, loop_regions(form)["loop:j"], aliasing=False)
    assert (None if found is None else sorted(found.folds)) == result


def test_possible_aliasing_is_a_dependence():
    form = kernel("for (int j = 0; j < n; j++) y[j] = x[j];")
    loop = loop_regions(form)["loop:j"]
    assert parallel(form, loop) is None
    assert parallel(form, loop, aliasing=False) is not None


# ---------------------------------------------------------------- uniformity, functions


def test_uniform_values():
    form = kernel("""
        int row = blockIdx.x; float a = x[row]; float b = x[threadIdx.x]; float c = y[0]; int d = 0;
        for (int j = threadIdx.x; j < n; j += blockDim.x) { d += 1; }
        int e = 0; for (int j2 = 0; j2 < n; j2++) { if (b > 0) break; e = j2; }
        int f = 0; if (threadIdx.x == 0) { f = 1; } int g = row * cols + n; float h = __shfl_sync(~0u, a, 0);
        y[row] = 1;
    """)
    uniform = Uniformity(form)
    agreed = {name for name in ["row", "a", "b", "c", "d", "e", "f", "g", "h", "j", "n"] if uniform(Name(name))}
    assert agreed == {"row", "a", "g", "n"}


def test_functions_of_one_thread():
    source = """
    #define SQ(v) ((v) * (v))
    #define MASKED(v) __shfl_sync(~0u, v, 0)
    #define HERE (threadIdx.x)
    __device__ float plain(float v) { return SQ(fmaxf(v, 0.0f)); }
    __device__ float outer(float v) { return plain(v) + 1; }
    __device__ float lane(float v) { return __shfl_down_sync(~0u, v, 1); }
    __device__ float place(float v) { return v * threadIdx.x; }
    __device__ float calls(float v) { return lane(v); }
    __device__ float shared(float v) { __shared__ float s; s = v; return s; }
    __device__ float odd(float v) { asm("nop;"); return v; }
    """
    assert functions_of(source).local == {"SQ", "plain", "outer"}


def test_constants_that_a_kernel_hides_are_none_in_it():
    source = "enum { n = 4, ROWS = 3 };\nconst int top = 5;\n"
    form = parse_kernels("__global__ void k(float *y, int n) { int top = n; y[0] = top * ROWS; }")["k"]
    assert constants(source, form, "k") == {"ROWS": 3}


def test_functions_of_records_may_be_qualified_by_macros():
    source = """
#define HD __forceinline__ __host__ __device__
struct Money {
    static HD long times(long a, long b) { return a * b; }
    static HD long here() { return threadIdx.x; }
};
"""
    found = functions_of(source)
    assert [found.only_computes(n) for n in ("Money::times", "Money::here")] == [True, False]


def test_functions_of_references_and_assembly_compute_where_they_change_nothing():
    source = """
    __device__ float plain(const float &v) { return v * v; }
    __device__ float out(float &v) { v = 1.0f; return v; }
    __device__ int packed(float v) { int n; asm volatile("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(n) : "f"(v)); return n; }
    __device__ int lane(float v) { int n; asm volatile("mov.u32 %0, %%laneid;" : "=r"(n)); return n; }
    __device__ int elsewhere(float v) { asm("mov.f32 %0, %1;" : "=f"(last) : "f"(v)); return 0; }
    """
    names = ("plain", "out", "packed", "lane", "elsewhere")
    assert [functions_of(source).only_computes(n) for n in names] == [True, False, True, False, False]


def test_functions_of_records_are_known_where_every_specialisation_is():
    source = """
    namespace traits {
    template <typename T> struct Limits {};
    template <> struct Limits<float> { public: static __device__ float least() { return -1e30f; }
        static __device__ float here() { return 1.0f; } };
    template <> struct Limits<double> { static __device__ double least() { return -1e300; }
        static __device__ double here() { return threadIdx.x; } };
    struct Ops { static __device__ float root(const float &v) { return sqrtf(v); } };
    }
    """
    found = functions_of(source)
    least, here, root = "traits::Limits<T>::least", "Limits<float>::here", "traits::Ops::root"
    assert [found.only_computes(n) for n in (least, here, root)] == [True, False, True]
    calls = [Call(Name(n), ()) for n in (least, here, root, "Limits<float>::other", "least")]
    assert [found.stays_in_thread(e) for e in calls] == [True, False, True, False, False]


def test_a_files_own_function_is_not_cudas_of_that_name():
    source = """
    #define ADD_TO(v, w) ((v) += (w))
    #define TWO_PI 6.28f  // a constant
    #define TURNS(v) ((v) / TWO_PI)
    __device__ float maxf(float a, float b) { return threadIdx.x ? a : b; }
    __device__ float fmaxf(float a, float b) { return blockIdx.x ? a : b; }
    __device__ float rsqrt(float a) { return 1.0f / sqrtf(a); }
    __device__ float outer(float a) { return fmaxf(a, rsqrt(a)); }
    """
    found = functions_of(source)
    assert {"rsqrt", "TURNS"} == found.pure == found.local
    assert [found.only_computes(n) for n in ("maxf", "fmaxf", "rsqrt", "fminf", "floatf", "intf", "std::sqrt")] == [
        False, False, True, True, False, False, True,
    ]  # fmt: skip
    form = kernel("float k = fmaxf(1.0f, n); float q = fminf(1.0f, n);")
    assert set(definitions(form, found).values) == {"q"}
