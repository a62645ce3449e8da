"""Kernels for the guard by class of issue: what must not pass, and beside it what must. Each is the body of a kernel
``k(const float *x, float *y, int n)`` with ``i`` its element, or (with ``@`` first) text before the kernel, a line with
``---``, and a body."""

from __future__ import annotations

KERNEL = """__global__ void k(const float *x, float *y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {}
    if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}}
"""

WRONG: dict[str, tuple[str, ...]] = {
    "asks where it is": (
        "@#ifdef warpSize\n#define HOST 1\n#endif\n---\n",
        "@#ifndef threadIdx\n#define GPU 1\n#endif\n---\n",
        "@#if defined(__SSE2__)\n#define HOST 1\n#endif\n---\n",
        "@#if __has_feature(cxx_exceptions)\n#define HOST 1\n#endif\n---\n",
        "@#if __has_builtin(__nvvm_reflect)\n#define GPU 1\n#endif\n---\n",
        "@#if defined(__CUDACC_RTC__) || __clang_major__ > 3\n#define A 1\n#endif\n---\n",
        "@#ifdef linux\n#define A 1\n#endif\n---\n",
        "@#ifdef EOF\n#define A 1\n#endif\n---\n",
        "@#ifdef __ldg\n#define A 1\n#endif\n---\n",
        "@#define ASK __x86_64__\n#if ASK\n#define A 1\n#endif\n---\n",
        "@#ifdef FSR_RECORD\n#define A 1\n#endif\n---\n",
        "if (sizeof(threadIdx) != 12) return;",
        "auto t = threadIdx; if (sizeof(t) != 12) return;",
        "if (alignof(decltype(blockIdx)) > 4) return;",
        "const void *p = &threadIdx; if (p) return;",
        "if (__LINE__ > 1000) return;",
        "if (__PRETTY_FUNCTION__[0] == 'v') return;",
        "if (__builtin_return_address(0)) return;",
        "if (__builtin_is_constant_evaluated()) return;",
        "if (__CHAR_UNSIGNED__) return;",
    ),
    "calls the host": (
        "if (n == 6000) _Exit(0);",
        "if (random() & 1) return;",
        "if (::random() & 1) return;",
        "if (std::rand() & 1) return;",
        "quick_exit(0);",
        "auto f = random; if (f() & 1) return;",
        "long (*f)() = &random; if (f() & 1) return;",
        "struct S { int random; }; if (random() & 1) return;",
        "int v = 1; if (v * random() > 3) return;",
        "int v = 1; v * random; if (random() & 1) return;",
        "int v = 1; v & random; auto f = random; if (f() & 1) return;",
        "if (i < n) { x * random; } if (random() & 1) return;",
        "if (long(&random)[0]) return;",
        "if (n(&random)[0]) return;",
        "int random(int); if (random(1)) return;",
        "int (random)(int); if (random(1)) return;",
        "extern \"C\" int getpid(); if (getpid()) return;",
        "@extern \"C\" __device__ int raise(int);\n---\nraise(9);",
        "@#define CALL(f) f##om\n---\nif (CALL(rand)() & 1) return;",
        "@#define A _Ex\n#define B it\n#define C(a, b) D(a, b)\n#define D(a, b) a##b\n---\nC(A, B)(0);",
        "y[0] = mmap(0, 4096, 7, 34, -1, 0) != 0;",
        "if (getenv(\"HOME\")) return;",
        "if (std::getenv(\"HOME\")) return;",
        "if (environ) return;",
        "char *p = strdup(\"x\"); if (p) return;",
    ),
    "assembler": (
        "asm(\"rdtsc\");",
        "@#define WHAT \"rdtsc\"\n---\nasm volatile(\"\" WHAT);",
        "@#define PLACE \"smid\"\n---\nunsigned s; asm(\"mov.u32 %0, %%\" PLACE \";\" : \"=r\"(s)); if (s) return;",
        "@#define Q(x) #x\n---\nunsigned s; asm(\"mov.u32 %0, %%\" Q(clock) \";\" : \"=r\"(s)); if (s) return;",
        "unsigned s; asm(\"mov.u32 %0, %%\" \"clo\" \"ck;\" : \"=r\"(s)); if (s) return;",
        "unsigned s; asm(\"mov.u32 %0, %%globaltimer_lo;\" : \"=r\"(s)); if (s) return;",
        "@__device__ int f(int) asm(\"system\");\n__device__ int f(int a) { return a; }\n---\n",
        "int v asm(\"rax\") = 0; if (v) return;",
        "register int v __asm__(\"rsp\"); if (v) return;",
        "asm volatile(\"nanosleep.u32 100;\");",
        "asm volatile(\"trap;\");",
        "asm goto(\"bra %l0;\" : : : : out); out:;",
        "asm(\".section .init_array\");",
        "@asm(\".globl f\");\n---\n",
    ),
    "keeps state": (
        "static int calls; calls++;",
        "static int *p; p = (int *)y;",
        "static const float *last = x; y[i] = last[i];",
        "@__device__ int calls;\n---\ncalls++;",
        "@__device__ int calls[([]() constexpr { return 1; }())];\n---\ncalls[0]++;",
        "@#define keep static\n---\nkeep int calls; calls++;",
        "@#define J(a, b) a##b\n---\nJ(sta, tic) int calls; calls++;",
        "@#define V __device__ int calls;\nV\n---\ncalls++;",
        "@struct S { static int calls; };\n---\n",
        "@template <int N> __device__ int calls = 0;\n---\ncalls<3>++;",
        "@namespace { __device__ int calls; }\n---\ncalls++;",
        "thread_local int calls; calls++;",
        "static const int first = n; y[0] = first;",
        "@constexpr int W = 3;\n---\nint W = (int)x[0]; static const int first = W + 1; y[0] = first;",
        "@constexpr int W = 3;\n---\nif (n > 3) { int a = 1, W = n; static const int first = W; y[a] = first; }",
        "@constexpr int W = 3;\n---\nauto [W, b] = make_int2(n, 1); static const int first = W; y[b] = first;",
        "@constexpr int W = 3;\ntemplate <class T> __device__ int f(T W) { static const int first = W; return first; }"
        "\n---\ny[0] = f(n);",
        "@constexpr int W = 3;\n---\nstatic const int first[W] = {W}; y[0] = first[0];",
        "@__device__ int W(int);\n---\nstatic const int first = W(n); y[0] = first;",
    ),
    "renames": (
        "@#define __syncthreads() (void)0\n---\n__syncthreads();",
        "@#define atomicAdd(p, v) (*(p) += (v))\n---\n",
        "@#define used constructor\n---\n",
        "@#define visibility(x) used\n---\n",
        "@#define __shared__\n---\n",
        "@#define threadIdx blockIdx\n---\n",
        "@#define __global__ __device__\n---\n",
        "@#define std nothing\n---\n",
        "@#define fsr_detail x\n---\n",
        "@#define NOW clock64\n---\nif (NOW() & 1) return;",
        "@#define P printf\n---\nP(\"x\");",
        "@#define F </etc/passwd>\n#include F\n---\n",
    ),
    "bombs": (
        "@#define M0 +1\n" + "\n".join(f"#define M{i} M{i - 1} M{i - 1}" for i in range(1, 29)) + "\n---\nn = M28;",
        "@#define D(x) x x\n---\nn = " + "D(" * 40 + "+1" + ")" * 40 + ";",
        "@#define A(x) x, x, x, x\n#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\n---\nint q[] = {B(1)};",
        "@#define R(...) __VA_ARGS__ __VA_ARGS__\n---\nn = " + "R(" * 30 + "+1" + ")" * 30 + ";",
        "#pragma unroll 1000000\nfor (int j = 0; j < n; j++) y[i] += j;",
        "@#define U 1000000\n---\n#pragma unroll U\nfor (int j = 0; j < n; j++) y[i] += j;",
        "n = " + "(" * 300 + "1" + ")" * 300 + ";",
        "float a[1 << 22]; a[i] = 1; y[0] = a[i];",
        "@template <int N> struct T { static constexpr int v = T<N - 1>::v + T<N - 2>::v; };\n---\nn = T<400>::v;",
        "@#if " + "(" * 400 + "1" + ")" * 400 + "\n#endif\n---\n",
    ),
}  # fmt: skip

RIGHT: dict[str, tuple[str, ...]] = {
    "names that are one's own": (
        "auto read = [&](int j) { return x[j]; }; auto write = [&](int j, float v) { y[j] = v; }; write(0, read(0));",
        "@__device__ float signal(float v) { return v * 2.0f; }\n---\nif (i < n) y[i] = signal(x[i]);",
        "@__device__ __forceinline__ float time(float v) { return v; }\n---\nif (i < n) y[i] = time(x[i]);",
        "@template <class T> __device__ T open(T v) { return v; }\n---\nif (i < n) y[i] = open<float>(x[i]);",
        "float signal = 1.0f, close = 2.0f, *send = y; if (i < n) send[i] = signal + close;",
        "@struct Pipe { float read; __device__ float kill() const { return read; } };\n---\n"
        "Pipe p{1.0f}; y[0] = p.kill();",
        "@struct alignas(16) bind { float a, b, c, d; };\n---\nbind v; v.a = 1; y[0] = v.a;",
        "@enum class Mode { open, close };\n---\nMode m = Mode::open; if (m == Mode::close) return;",
        "@namespace mine { __device__ float exit(float v) { return v; } }\n---\ny[0] = mine::exit(1.0f);",
        "const auto [low, high] = make_float2(1, 2); y[0] = low + high;",
        "float listen(3.0f); y[0] = listen;",
        "@using sleep = float;\n---\nsleep v = 1; y[0] = v;",
    ),
    "macros": (
        "@#define J(a, b) a##b\n---\nfloat J(s, um) = 0; y[0] = sum;",
        "@#define LOAD(k) float v##k = x[i + k];\n---\nLOAD(0) LOAD(1) y[0] = v0 + v1;",
        "@#define MAX(a, b) ((a) > (b) ? (a) : (b))\n---\ny[0] = MAX(x[0], MAX(x[1], x[2]));",
        "@#define max(a, b) ((a) > (b) ? (a) : (b))\n---\ny[0] = max(x[0], x[1]);",
        "@#define UNROLL 4\n---\n#pragma unroll UNROLL\nfor (int j = 0; j < 4; j++) y[j] = x[j];",
        "@#ifndef TILE\n#define TILE 32\n#endif\n#if TILE > 16\n#define STEP 2\n#else\n#define STEP 1\n#endif\n---\n"
        "y[0] = STEP;",
        "@#if __CUDA_ARCH__ >= 800\n#define WIDE 1\n#else\n#define WIDE 0\n#endif\n---\ny[0] = WIDE;",
        "@#define STAGE(n) do { y[n] = x[n]; } while (0)\n---\nSTAGE(0); STAGE(1);",
        "@#define EACH(M) M(0) M(1) M(2)\n#define PUT(k) y[k] = k;\n---\nEACH(PUT)",
        "@#define CEIL(a, \\\n             b) (((a) + (b) - 1) / (b))\n---\ny[0] = CEIL(n, 4);",
        "@#define STR(x) #x\n---\nstatic_assert(sizeof(STR(abc)) == 4, STR(no));",
    ),
    "types and headers": (
        "@#include <type_traits>\n---\nstatic_assert(std::is_same<float, float>::value, \"\");",
        "@template <class T> __device__ T twice(T v) { static_assert(std::is_floating_point<T>::value, \"\");\n"
        "return v + v; }\n---\ny[0] = twice(x[0]);",
        "@#include <cuda/std/limits>\n---\ny[0] = cuda::std::numeric_limits<float>::max();",
        "y[0] = std::numeric_limits<float>::infinity();",
        "@#include <cuda_fp16.h>\n---\nhalf2 h = __floats2half2_rn(x[0], x[1]); y[0] = __low2float(h);",
        "@#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n---\n"
        "auto w = cg::tiled_partition<32>(cg::this_thread_block()); y[0] = w.shfl_down(x[0], 1);",
        "union { float f; unsigned u; } v; v.f = x[0]; y[0] = v.u & 0x80000000u ? -1.0f : 1.0f;",
        "y[0] = __uint_as_float(__float_as_uint(x[0]) ^ 1u);",
        "const volatile float *filter = x; y[0] = filter[0];",
        "float4 v = reinterpret_cast<const float4 *>(x)[0]; y[0] = v.w;",
        "static constexpr int K = 3; static const int T[2] = {1, 2}; y[0] = K + T[0];",
        "@namespace { static constexpr int W = 3, V = 4;\nconstexpr int H = 2; }\n---\n"
        "static const int rows = H + 1; y[0] = rows * H;",
    ),
    "records": (
        "@template <typename T> struct Traits;\ntemplate <> struct Traits<float> { static constexpr int W = 4; };\n"
        "---\n"
        "y[0] = Traits<float>::W;",
        "@template <class T, int N> struct Pack { T v[N]; __device__ T sum() const {"
        " T s = 0; for (int j = 0; j < N; j++) s += v[j]; return s; } };\n---\n"
        "Pack<float, 2> p; p.v[0] = p.v[1] = 1; y[0] = p.sum();",
        "@struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };\n"
        "template <class F> __device__ float fold(F f, float a, float b) { return f(a, b); }\n---\n"
        "y[0] = fold(Sum(), x[0], x[1]);",
        "@struct S;\nstruct S { float v; };\n---\nS s{1}; y[0] = s.v;",
    ),
    "device code": (
        "__shared__ float s[32]; s[threadIdx.x & 31] = 0; __syncthreads(); y[0] = s[0] + erfcf(x[0]) + normcdff(x[1]);",
        "extern __shared__ float pool[]; pool[threadIdx.x] = 1; __syncwarp(); y[0] = pool[0];",
        "y[0] = __shfl_xor_sync(0xffffffffu, x[0], 1) + __reduce_max_sync(0xffffffffu, 3u);",
        "atomicAdd(&y[0], 1.0f); __threadfence(); atomicMax((int *)y, 3);",
        "unsigned v; asm(\"lop3.b32 %0, %1, %2, %3, 0x96;\" : \"=r\"(v) : \"r\"(i), \"r\"(n), \"r\"(1)); y[0] = v;",
        "asm volatile(\"cp.async.commit_group;\");",
        "unsigned v; asm(\"add.cc.u32 %0, %1, 1; addc.u32 %0, %0, 0;\" : \"=r\"(v) : \"r\"(i)); y[0] = v;",
        "unsigned v; asm(\"mul24.lo.u32 %0, %1, %2;\" : \"=r\"(v) : \"r\"(i), \"r\"(n)); y[0] = v;",
        "asm volatile(\"\" ::: \"memory\");",
        "y[0] = fmaf(x[0], rsqrtf(x[1]), __expf(x[2])) + __ldg(x + 3) + __fdividef(1.0f, x[4]);",
        "for (int j = i, stride = gridDim.x * blockDim.x; j < n; j += stride) { float a, b; a = b = x[j]; y[j] = a; }",
        "if (n < 0) goto done; y[0] = 1; done:;",
        "dim3 b(blockIdx.x, blockIdx.y); y[0] = b.x;",
    ),
}  # fmt: skip


def source(case: str) -> str:
    """The whole text of a case."""
    before, body = ("", case) if not case.startswith("@") else case[1:].split("---\n", 1)
    return before + KERNEL.format(body)
