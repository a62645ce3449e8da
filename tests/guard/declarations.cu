// Right kernels that declare in the ways that C++ has: the guard takes each. A line with === begins the next.
// === after body
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = 0; } const unsigned a = 1, b = 2; if (i < n) y[i] = x[i] * (a + b - 1);
}
// === after for
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int q = 0; q < 1; q++) { } unsigned long long a = 1, b = 2; if (i < n) y[i] = x[i] * (a + b - 1);
}
// === array ref param
template <int N> __device__ float f(const float (&w)[N]) { float s = 0; for (int j = 0; j < N; j++) s += w[j]; return s; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2] = {1, 1}; if (i < n) y[i] = x[i] * f(w);
}
// === array ref param T
template <typename T, int N> __device__ T f(T (&w)[N]) { return w[0] + w[N-1]; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2] = {1, 1}; if (i < n) y[i] = x[i] * f(w);
}
// === array ref local
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2] = {1, 1}; float (&v)[2] = w; if (i < n) y[i] = x[i] * (v[0] + v[1]);
}
// === fn pointer
typedef float (*op_t)(float);
__device__ float twice(float v) { return 2 * v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    op_t op = twice; if (i < n) y[i] = op(x[i]);
}
// === fn pointer raw
__device__ float twice(float v) { return 2 * v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float (*op)(float) = twice; if (i < n) y[i] = op(x[i]);
}
// === pointer to array
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2][2] = {{1, 1}, {1, 1}}; float (*p)[2] = w; if (i < n) y[i] = x[i] * (p[0][0] + p[1][1]);
}
// === lambda
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto f = [&](float v) { return v + v; }; if (i < n) y[i] = f(x[i]);
}
// === lambda init capture
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto f = [s = 2.0f](float v) { return v * s; }; if (i < n) y[i] = f(x[i]);
}
// === lambda init captures
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto f = [s = 2.0f, t = 0.0f](float v) { return v * s + t; }; if (i < n) y[i] = f(x[i]);
}
// === lambda mutable
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    int c = 0; auto f = [&c](float v) mutable -> float { c++; return v * 2; }; if (i < n) y[i] = f(x[i]);
}
// === generic lambda
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto f = [](auto v) { return v + v; }; if (i < n) y[i] = f(x[i]);
}
// === structured binding
struct P { float a, b; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    P p{1, 1}; auto [u, v] = p; if (i < n) y[i] = x[i] * (u + v);
}
// === member list
struct P { float a, b, c; int d = 0, e = 0; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    P p{1, 1, 0}; if (i < n) y[i] = x[i] * (p.a + p.b + p.c + p.d + p.e);
}
// === ctor init list
struct P { float a; int b; __device__ P(float u, int v) : a(u), b(v) {} };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    P p(2.0f, 0); if (i < n) y[i] = x[i] * p.a + p.b;
}
// === operator
struct V { float v; __device__ V operator+(const V &o) const { return {v + o.v}; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { V a{x[i]}; y[i] = (a + a).v; }
}
// === operator call
struct F { __device__ float operator()(float v) const { return v * 2; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    F fun; if (i < n) y[i] = fun(x[i]);
}
// === conversion
struct F { float v; __device__ operator float() const { return v; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * F{x[i]};
}
// === enum class
enum class Mode : int { Twice, Once };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    Mode m = Mode::Twice; if (i < n) y[i] = m == Mode::Twice ? 2 * x[i] : x[i];
}
// === enum values
enum { WIDTH = 4, HEIGHT = WIDTH * 2 };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * HEIGHT / WIDTH;
}
// === using alias
using real = float; template <typename T> using ptr = T *;
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    ptr<const real> p = x; if (i < n) y[i] = p[i] * 2;
}
// === namespace
namespace a { namespace b { __device__ float f(float v) { return 2 * v; } } }
namespace c = a::b;
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = c::f(x[i]);
}
// === constexpr fn
constexpr __host__ __device__ int log2i(int v) { return v > 1 ? 1 + log2i(v / 2) : 0; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * log2i(4);
}
// === constexpr var list
constexpr int A = 1, B = 2;
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * (A + B - 1);
}
// === constexpr array
__device__ constexpr float W[3] = {1, 0, 1};
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * (W[0] + W[1] + W[2]);
}
// === local constexpr array
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    constexpr float W[3] = {1, 0, 1}; if (i < n) y[i] = x[i] * (W[0] + W[1] + W[2]);
}
// === static constexpr
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    static constexpr int W = 2; if (i < n) y[i] = x[i] * W;
}
// === template default
template <typename T = float, int K = 2> struct Q { static __device__ T mul(T v) { return v * K; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = Q<>::mul(x[i]);
}
// === template variadic
template <typename... A> __device__ float sum(A... a) { return (a + ...); }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sum(x[i], x[i]);
}
// === template recursion
template <int N> struct R { static __device__ float go(const float *p) { return p[0] + R<N - 1>::go(p); } };
template <> struct R<0> { static __device__ float go(const float *) { return 0; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = R<2>::go(x + i);
}
// === if init
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (int q = i; q < n) y[q] = 2 * x[q];
}
// === if constexpr
template <bool B> __device__ float f(float v) { if constexpr (B) return 2 * v; else return v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f<true>(x[i]);
}
// === range for
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2] = {1, 1}, s = 0; for (float v : w) s += v; if (i < n) y[i] = s * x[i];
}
// === range for auto&
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w[2] = {1, 1}; for (auto &v : w) v *= 1; float s = w[0] + w[1]; if (i < n) y[i] = s * x[i];
}
// === switch
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s; switch (n % 1) { case 0: { float t = 1, u = 1; s = t + u; break; } default: s = 2; } if (i < n) y[i] = s * x[i];
}
// === case decl
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0; switch (n % 1) { default: float t = 1, u = 1; s = t + u; } if (i < n) y[i] = s * x[i];
}
// === do while
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0; do { float t = 1, u = 1; s = t + u; } while (0); float a = 0, b = 0; if (i < n) y[i] = s * x[i] + a + b;
}
// === goto
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) goto done; y[i] = 2 * x[i]; done: ;
}
// === comma for
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int a = i, b = 0; a < n && b < 1; ++a, ++b) y[a] = 2 * x[a];
}
// === two pointers
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *p = x + i, *q = x + i; if (i < n) y[i] = *p + *q;
}
// === pointer ref
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *p = x; const float *&q = p; if (i < n) y[i] = 2 * q[i];
}
// === restrict ptr
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float * __restrict__ p = x; float * __restrict__ q = y; if (i < n) q[i] = 2 * p[i];
}
// === shared 2d
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float t[32][33], u[32]; t[threadIdx.x % 32][0] = u[threadIdx.x % 32] = 0; __syncthreads(); if (i < n) y[i] = 2 * x[i] + t[0][0] + u[0];
}
// === shared struct
struct S { float a[32]; int c; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ S s; if (threadIdx.x == 0) s.c = 2; __syncthreads(); if (i < n) y[i] = s.c * x[i];
}
// === union
union U { float f; unsigned u; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { U v; v.f = x[i]; v.u += 1u << 23; y[i] = x[i] == 0 ? 0 : v.f; }
}
// === anon union
struct S { union { float f; unsigned u; }; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { S v; v.f = x[i] * 2; y[i] = v.f; }
}
// === bitfield
struct S { unsigned a : 4, b : 4; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    S s; s.a = 1; s.b = 1; if (i < n) y[i] = x[i] * (s.a + s.b);
}
// === local struct
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    struct L { float a, b; }; L l = {1, 1}; if (i < n) y[i] = x[i] * (l.a + l.b);
}
// === local struct brace
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    struct L { float a, b; } l = {1, 1}, m{0, 0}; if (i < n) y[i] = x[i] * (l.a + l.b + m.a);
}
// === local enum
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    enum { K = 2 }; if (i < n) y[i] = x[i] * K;
}
// === local using
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    using T = float; const T two = 2; if (i < n) y[i] = x[i] * two;
}
// === local typedef
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    typedef float T; const T two = 2; if (i < n) y[i] = x[i] * two;
}
// === typedef array
typedef float row_t[4];
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    row_t r = {1, 1, 0, 0}; if (i < n) y[i] = x[i] * (r[0] + r[1]);
}
// === auto ret
__device__ auto f(float v) -> float { return v * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}
// === auto ret 2
__device__ auto f(float v) { return v * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}
// === decltype
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    decltype(x[0] + 0) t = 2; if (i < n) y[i] = x[i] * t;
}
// === decltype auto
template <typename F> __device__ decltype(auto) call(F &&f, float v) { return f(v); }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = call([](float v) { return v + v; }, x[i]);
}
// === default arg
__device__ float f(float v, float s = 2.0f, float t = 0.0f) { return v * s + t; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}
// === unnamed param
__device__ float f(float v, int, const float *) { return v * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i], 0, x);
}
// === forward decl
__device__ float f(float v);
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]); }
__device__ float f(float v) { return v * 2;
}
// === member fn body
struct A { const float *p; __device__ float at(int j) const { return p[j]; } __device__ float two(int j) const { return at(j) + this->at(j); } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    A a{x}; if (i < n) y[i] = a.two(i);
}
// === member out of line
struct A { const float *p; __device__ float two(int j) const; };
__device__ float A::two(int j) const { return p[j] * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    A a{x}; if (i < n) y[i] = a.two(i);
}
// === inherit
struct B { float s = 2; __device__ float m(float v) { return v * s; } };
struct D : B { };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    D d; if (i < n) y[i] = d.m(x[i]);
}
// === crtp
template <typename D> struct B { __device__ float go(float v) { return static_cast<D *>(this)->twice(v); } };
struct D : B<D> { __device__ float twice(float v) { return 2 * v; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    D d; if (i < n) y[i] = d.go(x[i]);
}
// === friend
struct V { float v; friend __device__ V operator*(V a, float b) { return {a.v * b}; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { V a{x[i]}; y[i] = (a * 2.0f).v; }
}
// === asm out
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v; if (i < n) { asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(x + i)); y[i] = 2 * v; }
}
// === volatile
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile float v = 2; if (i < n) y[i] = x[i] * v;
}
// === float4 vars
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = make_float4(1, 1, 0, 0), b{}; if (i < n) y[i] = x[i] * (a.x + a.y + b.z);
}
// === reinterpret
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { const int *q = reinterpret_cast<const int *>(x); y[i] = 2 * __int_as_float(q[i]); }
}
// === macro fn
#define TWICE(v) ((v) + (v))
#define LOOP(i, n) for (int i = 0; i < n; i++)
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    LOOP(q, 1) if (i < n) y[i] = TWICE(x[i]);
}
// === cg
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); w.sync(); if (i < n) y[i] = 2 * x[i];
}
// === std
#include <cuda/std/limits>
#include <cuda/std/array>
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::std::array<float, 2> a{1, 1}; if (i < n) y[i] = x[i] * (a[0] + a[1]);
}
// === digit sep
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int big = 1'000'000; if (i < n) y[i] = x[i] * (big / 500'000);
}
// === binary
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int m = 0b10; if (i < n) y[i] = x[i] * m;
}
// === hexfloat
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float m = 0x1p1f; if (i < n) y[i] = x[i] * m;
}
// === ternary decl
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = n > 0 ? 1 : 2, b = n > 0 ? 1 : 0; if (i < n) y[i] = x[i] * (a + b);
}
// === template call in decl
template <typename T> __device__ T id(T v) { return v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = id<float>(1), b = id<float>(1); if (i < n) y[i] = x[i] * (a + b);
}
// === brace decl
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a{1}, b{1}; if (i < n) y[i] = x[i] * (a + b);
}
// === paren decl
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a(1), b(1); if (i < n) y[i] = x[i] * (a + b);
}
// === paren decl unsigned
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned a(1), b(1); if (i < n) y[i] = x[i] * (a + b);
}
// === after label
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    again: float a = 1, b = 1; if (i >= n + 100) goto again; if (i < n) y[i] = x[i] * (a + b);
}
// === attribute
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    [[maybe_unused]] float a = 1, b = 1; if (i < n) y[i] = x[i] * (a + b);
}
// === align local
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    alignas(16) float a[4] = {1, 1, 0, 0}, b[4] = {}; if (i < n) y[i] = x[i] * (a[0] + a[1] + b[0]);
}
// === align type
struct __align__(16) Q { float a, b, c, d; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    Q q = {1, 1, 0, 0}; if (i < n) y[i] = x[i] * (q.a + q.b);
}
// === typename dep
template <typename T> struct W { using type = T; };
template <typename T> __device__ T f(T v) { typename W<T>::type a = v, b = v; return a + b; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}
// === ptr to member
struct S { float a, b; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    S s{2, 0}; float S::*m = &S::a; if (i < n) y[i] = x[i] * (s.*m);
}
// === launch bounds
__global__ void __launch_bounds__(256, 2) k(const float *__restrict__ x, float *__restrict__ y, const int n) { const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2.0f;
}
// === trailing attr
__device__ __forceinline__ static float f(float v) { return 2 * v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}
// === extern C
extern "C" __global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
// === int128
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned __int128 q = 2; if (i < n) y[i] = x[i] * (float)(unsigned long long)q;
}
// === fold macro
#define DO(...) __VA_ARGS__
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    DO(float a = 1, b = 1;) if (i < n) y[i] = x[i] * (a + b);
}
// === pragma
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
#pragma unroll 4
for (int q = 0; q < 2; q++) s += x[i < n ? i : 0];
 if (i < n) y[i] = s;
}
// === nested lambda
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto f = [=](auto g) { auto h = [&](float v) { return g(v); }; return h; }; if (n > 0 && i < n) y[i] = f([](float v) { return 2 * v; })(x[i]);
}
// === lambda ptr param
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto put = [&](float *p, const float (&w)[2]) { *p = w[0] + w[1]; }; if (i < n) { float w[2] = {x[i], x[i]}; put(y + i, w); }
}
// === array of arrays ref
template <int R, int C> __device__ float tr(const float (&m)[R][C]) { return m[0][0] + m[R - 1][C - 1]; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float m[2][2] = {{1, 0}, {0, 1}}; if (i < n) y[i] = x[i] * tr(m);
}
// === fn ptr param
__device__ float ap(float (*f)(float), float v) { return f(v); }
__device__ float tw(float v) { return 2 * v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = ap(tw, x[i]);
}
// === fn ref param
__device__ float ap(float (&f)(float), float v) { return f(v); }
__device__ float tw(float v) { return 2 * v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = ap(tw, x[i]);
}
// === template template
template <typename T> struct B { T v; };
template <template <typename> class C, typename T> __device__ T get(C<T> c) { return c.v + c.v; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = get(B<float>{x[i]});
}
// === non-type auto
template <auto V> __device__ float m(float v) { return v * V; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = m<2>(x[i]);
}
// === designated
struct P { float a; float b; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    P p{.a = 1, .b = 1}; if (i < n) y[i] = x[i] * (p.a + p.b);
}
// === multi ctor
struct P { float a = 1; P() = default; __device__ explicit P(float v) : a{v} {} ~P() = default; P(const P &) = default; P &operator=(const P &) = default; };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    P p{2.0f}; if (i < n) y[i] = x[i] * p.a;
}
// === while decl
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (int q = n > i ? n - i : 0) { y[i] = 2 * x[i]; (void)q; break; }
}
// === local extern shared
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    extern __shared__ float sm[]; (void)sm; if (i < n) y[i] = 2 * x[i];
}
// === short names
__device__ float read(float v) { return v; }
__device__ float write(float v) { return v; }
__device__ float signal(float v) { return v * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = signal(write(read(x[i])));
}
// === names open
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float open = 1, close = 1, index = 0, time = 0, link = 0; if (i < n) y[i] = x[i] * (open + close + index + time + link);
}
// === inherited use
struct B { float s = 2; };
struct D : public B { __device__ float m(float v) { return v * s; } };
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    D d; if (i < n) y[i] = d.m(x[i]);
}
// === template out of line
template <typename T> struct A { const T *p; __device__ T two(int j) const; };
template <typename T> __device__ T A<T>::two(int j) const { return p[j] * 2; }
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    A<float> a{x}; if (i < n) y[i] = a.two(i);
}
// === y0 j1
__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    float y0 = 1, y1 = 1, j0 = 0, j1 = 0, gamma = 0; if (i < n) y[i] = x[i] * (y0 + y1 + j0 + j1 + gamma);
}
