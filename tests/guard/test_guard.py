"""The static guard: refuses what a kernel has no use for, lets aggressive honest kernels pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.guard.check import guard
from fsr.records import Candidate, Fault, Launch, Plan

EXAMPLES = Path(__file__).parents[2] / "examples"
BODY = "__global__ void k(float *x, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {} }}\n"
BASE = BODY.format("if (i < n) x[i] *= 2.0f;")


def made(source: str, *entries: str, flags: tuple[str, ...] = ()) -> Candidate:
    launches = tuple(Launch(e, ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "n")) for e in entries or ("k",))
    return Candidate(source, Plan(launches, (), flags))


def judge(source: str, *entries: str, base: str = BASE, flags: tuple[str, ...] = ()) -> Fault | None:
    return guard(made(source, *entries, flags=flags), made(base))


REFUSED = {
    "quoted include": '#include "secret.h"\n' + BASE,
    "absolute include": "#include </etc/passwd>\n" + BASE,
    "climbing include": "#include <cuda/../../etc/passwd>\n" + BASE,
    "host header": "#include <stdio.h>\n" + BASE,
    "computed include": "#define H <stdio.h>\n#include H\n" + BASE,
    "embed": BODY.format('static const char d[] = {\n#embed "/etc/passwd"\n};'),
    "line": "#line 1 \"other.cu\"\n" + BASE,
    "numbered line": '# 1 "other.cu"\n' + BASE,
    "host assembly": BODY.format('asm("syscall");'),
    "host assembly with registers": BODY.format('asm volatile("movq %%rsp, %0" : "=r"(i));'),
    "clock in assembly": BODY.format('asm volatile("mov.u32 %0, %%clock;" : "=r"(i));'),
    "place in assembly": BODY.format('asm("mov.u32 %0, %%smid;" : "=r"(i));'),
    "assembly at file scope": 'asm(".section .init_array");\n' + BASE,
    "constructor": "__attribute__((constructor)) static void start() {}\n" + BASE,
    "constructor in brackets": "[[gnu::constructor]] static void start() {}\n" + BASE,
    "section attribute": '__attribute__((section(".init_array"))) void (*p)() = 0;\n' + BASE,
    "device variable": "__device__ int calls;\n" + BASE,
    "device array in a namespace": "namespace a { __device__ float cache[64]; }\n" + BASE,
    "device variable initialised": "__device__ unsigned seen = 0u;\n" + BASE,
    "plain variable": "int calls = 0;\n" + BASE,
    "object with a constructor": "struct S { S() {} int v; };\nS s;\n" + BASE,
    "record and object at once": "struct S { int v; } s;\n" + BASE,
    "constructed in parentheses": "struct S { __device__ S(int) {} };\n__device__ S s(3);\n" + BASE,
    "const computed at load": "__device__ int f();\nconst int v = f();\n" + BASE,
    "static local": BODY.format("static int calls; calls++;"),
    "static local of a device function": "__device__ int f() { static int c = 0; return ++c; }\n" + BASE,
    "static const computed once": BODY.format("static const float first = x[0]; x[i] = first;"),
    "static member": "struct S { static int v; };\n" + BASE,
    "static behind a macro": "#define KEEP static\n" + BODY.format("KEEP int c; c++;"),
    "static behind a splice": BODY.format("sta\\\ntic int c; c++;"),
    "managed": "__managed__ int c;\n" + BASE,
    "child launch": BODY.format("k<<<1, 32>>>(x, n);"),
    "clock": BODY.format("x[i] = clock64();"),
    "nanosleep": BODY.format("__nanosleep(100);"),
    "printf": BODY.format('printf("%d", i);'),
    "malloc": BODY.format("float *p = (float *)malloc(4); x[i] = *p;"),
    "new": BODY.format("float *p = new float; x[i] = *p;"),
    "runtime call": BODY.format("float *p; cudaMalloc(&p, 4);"),
    "driver call": BODY.format("cuMemAlloc(0, 4);"),
    "system": BODY.format('system("id");'),
    "pasting": "#define J(a, b) a##b\n" + BODY.format("J(clo, ck64)();"),
    "raw string": BODY.format('const char *s = R"(x)"; x[i] = s[0];'),
    "digraph": BODY.format("x<:i:> = 0;"),
    "escape in a name": BODY.format("x[i] = cl\\u006fck();"),
    "redefined keyword": "#define if while\n" + BASE,
    "unbalanced macro": "#define OPEN {\n" + BASE,
    "where am I": "#ifdef __x86_64__\n#endif\n" + BASE,
    "compile time": BODY.format("x[i] = __TIME__[0];"),
    "emulator internals": BODY.format("x[i] = fsr_detail.count;"),
    "compiler builtin": BODY.format("x[i] = *(float *)__builtin_frame_address(0);"),
    "decoy kernel": BASE + "__global__ void decoy(float *x) { x[0] = 1; }\n",
    "missing kernel": "__global__ void other(float *x) { x[0] = 1; }\n",
    "extern original": "extern __global__ void original(float *, int);\n" + BASE,
    "huge unroll": BODY.format("\n#pragma unroll 100000\nfor (int j = 0; j < n; j++) x[j] += 1;"),
    "macro bomb": "#define A x[i]+=1;x[i]+=1;x[i]+=1;x[i]+=1;\n" + "".join(
        f"#define {chr(66 + i)} {' '.join([chr(65 + i)] * 8)}\n" for i in range(8)) + BODY.format("I"),
    "deep template": "template <int N> struct D { static constexpr int v = D<N - 1>::v + 1; };\n"
    "template <> struct D<0> { static constexpr int v = 0; };\n" + BODY.format("x[i] = D<90000>::v;"),
    "branching template": "template <int N> struct D { static constexpr int v = D<N - 1>::v + D<N - 2>::v; };\n"
    "template <> struct D<0> { static constexpr int v = 0; };\n" + BODY.format("x[i] = D<60>::v;"),
    "gigabyte array": BODY.format("float big[1 << 30]; big[i] = 0; x[i] = big[n];"),
    "deep nesting": BODY.format("x[i] = " + "(" * 300 + "1" + ")" * 300 + ";"),
    "long line": BASE + "// " + "x" * 5000,
    "huge source": BASE + "// x\n" * 80000,
    "macro before a namespace": "#define NS_OPEN int kept;\nNS_OPEN namespace a { }\n" + BASE,
    "specialised variable": "template <int N> struct S;\ntemplate <> int S<1>::count;\n" + BASE,
    "pragma": "#pragma GCC poison x\n" + BASE,
    "pragma operator": BODY.format('_Pragma("GCC optimize")'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    fault = judge(REFUSED[name])
    assert fault is not None
    assert fault.kind == "refused"
    assert len(fault.detail) < 200


ALLOWED = {
    "the baseline": BASE,
    "words in comments and strings": "// static clock64() asm\n/* #include <stdio.h> \n <<<1, 2>>> */\n" + BASE,
    "device toolkit": "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <cuda/std/limits>\n" + BASE,
    "explicit specialisations": "template <class T> struct Z { static __device__ T z() { return 0; } };\n"
    "template <> struct Z<int> { static __device__ int z() { return 1; } };\n"
    "template <class T> __device__ T zero() { return 0; }\ntemplate <> __device__ float zero<float>() { return 0.f; }\n"
    "template __device__ int zero<int>();\n" + BASE,
    "constants": "constexpr int TILE = 64;\nstatic constexpr float C[3] = {1.f, 2.f, 3.f};\nconst int W = 32;\n"
    "__constant__ float weights[2] = {0.5f, 0.25f};\n#define BLOCK 256\n#define SQ(a) ((a) * (a))\n" + BASE,
    "shared memory": "extern __shared__ float dynamic[];\n" + BODY.format(
        "__shared__ float s[256]; static __shared__ float t[4]; s[i] = t[0] + dynamic[0]; x[i] = s[0];"),
    "helpers": "template <int N> __device__ __forceinline__ float sum(float v) {\n#pragma unroll\n"
    "for (int o = N / 2; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o); return v; }\n"
    "static __device__ float twice(float v) { return 2 * v; }\nstruct Pair { float a; int b; };\n"
    "struct __align__(16) Vec { float v[4]; __device__ float &operator[](int i) { return v[i]; } };\n"
    "enum Mode { A, B };\nusing F = float;\ntypedef unsigned u32;\n"
    "inline __device__ float early(float);\ninline __device__ float early(float v) { return v; }\n" + BASE,
    "vector loads and bounds": "__global__ void __launch_bounds__(256, 2) k(float *__restrict__ x, int n) {\n"
    "const float4 *p = reinterpret_cast<const float4 *>(x); float4 v = __ldg(p + threadIdx.x);\n"
    "for (int i = 0; i < n; i += 4) { x[i] = v.x; } }\n",
    "unrolled": BODY.format("\n#pragma unroll 8\nfor (int j = 0; j < 8; j++) x[i + j] += 1;"),
    "known assembly": BODY.format(
        'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\\n" :: "r"(i), "l"(x)); '
        'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x[i]) : "f"(x[i])); asm volatile("" ::: "memory");'),
    "pointers to what a typedef names": "typedef float T;\ntypedef float V[4];\n" + BODY.format(
        "T *to = &x[1]; V *four = (V *)x; to[i] = (*four)[i];"),
    "attributes": "__attribute__((noinline)) __device__ int f(int a) { return a; }\n" + BODY.format(
        "[[maybe_unused]] int j = f(i); float v[4] __attribute__((aligned(16))); v[0] = x[i]; x[i] = v[0];"),
    "template kernel": "template <int B, typename T> __global__ void k(T *x, int n) { x[threadIdx.x % B] = n; }\n",
    "conditional code": "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#define FAST 1\n#else\n"
    "#define FAST 0\n#endif\n"
    + BASE,
    "small recursive template": "template <int N> struct D { static constexpr int v = D<N - 1>::v + 1; };\n"
    "template <> struct D<0> { static constexpr int v = 0; };\n" + BODY.format("x[i] = D<16>::v;"),
    "lambda and static function member": "struct S { static __device__ int f(int a) { return a; } };\n"
    + BODY.format("auto g = [=](int a) { return a + n; }; x[i] = g(S::f(i));"),
    "lambda for the device": BODY.format("auto g = [=] __device__ (int a) { return a + n; }; x[i] = g(i);"),
    "object of a template": "#include <cuda/atomic>\ntemplate <class T, int N> struct Pack { T v[N]; };\n"
    + BODY.format("cuda::atomic_ref<float, cuda::thread_scope_device> c(*x); c.fetch_add(1.f);"
                  "if (n) Pack<Pack<int, 1>, 2> p(i);"),
    "members with clumsy names": "struct R { int time; int read; };\n"
    + BODY.format("R r; r.time = 1; r.read = 2; x[i] = r.time;"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    entry = "k<32, float>" if name == "template kernel" else "k"
    assert judge(ALLOWED[name], entry) is None


def test_what_the_baseline_does_a_candidate_may_do() -> None:
    base = '__device__ int calls;\n#include "mine.h"\n' + BODY.format(
        'x[i] = clock64(); printf("x"); asm volatile("mov.u32 %0, %%clock;" : "=r"(i)); static int c; c++;'
    )
    changed = base.replace("x[i] = clock64()", "x[i] = 1 + clock64()")
    assert judge(changed, base=base) is not None  # the function that holds a static is not the baseline's any more
    calm = base.replace("static int c; c++;", "")
    assert judge(calm.replace("x[i] =", "x[i] +="), base=calm) is None
    assert judge(calm.replace("int calls;", "int others;"), base=calm) is not None


def test_the_line_of_the_fault_is_told() -> None:
    source = "// one\n#define TWO \\\n  2\n" + BASE + "\n__device__ int kept;\n"
    fault = judge(source)
    assert fault is not None
    assert fault.line == source.splitlines().index("__device__ int kept;") + 1
    assert "kept" in fault.detail


@pytest.mark.parametrize(
    "flag", ["--use_fast_math", "-use_fast_math", "--maxrregcount=64", "--fmad=false", "-DTILE=32"]
)
def test_tuning_flags_are_allowed(flag: str) -> None:
    assert judge(BASE, flags=(flag,)) is None


@pytest.mark.parametrize(
    "flag", ["-I/etc", "--include=/etc/passwd", "-o/tmp/x", "-fplugin=x.so", "-Dif=while;", "@file"]
)
def test_other_flags_are_refused(flag: str) -> None:
    fault = judge(BASE, flags=(flag,))
    assert fault is not None
    assert flag in fault.detail
    plan = replace(made(BASE).plan, flags=(flag,))
    assert guard(Candidate(BASE, plan), Candidate(BASE, plan)) is None  # the user's own flag


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cu")), ids=lambda p: p.stem)
def test_no_example_is_refused_against_a_trivial_baseline(path: Path) -> None:
    source = path.read_text()
    if "<<<" in source:
        pytest.skip("holds host code: the kernel is cut out before the guard sees it")
    entry = source.split("__global__ void ")[1].split("(")[0].strip()
    assert guard(made(source, entry), made(BASE)) is None


_DECLARATIONS = (Path(__file__).parent / "declarations.cu").read_text().split("// === ")[1:]


@pytest.mark.parametrize("text", _DECLARATIONS, ids=lambda text: text.partition("\n")[0])
def test_every_way_to_declare(text: str) -> None:
    base = "__global__ void k(const float *x, float *y, int n) { if (n) *y = *x; }\n"
    assert judge(text.partition("\n")[2], base=base) is None
