#ifndef MESSY_CU
#define MESSY_CU
/* Everything at once: conditionals, macros that make functions, structs, operators, extern "C", a namespace. */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_fp16.h>
#include "helpers.cuh"

#if defined(USE_DOUBLE) && USE_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define DEV __device__ __forceinline__
#define MAKE_OP(name, op) \
    DEV real name##_op(real a, real b) \
    {                       \
        return a op b;      \
    }

MAKE_OP(add, +)
MAKE_OP(mul, *)

enum Mode { kPlain = 0, kScaled = 1 };
enum class Unused { A, B };

struct __align__(8) Pair {
    real x, y;
    DEV Pair scaled(real f) const { return Pair{x * f, y * f}; }
};

DEV Pair operator+(const Pair &a, const Pair &b) { return Pair{a.x + b.x, a.y + b.y}; }

__device__ const real kTable[4] = {1, 2, 3, 4};
__constant__ real kWeights[4];
int g_counter = 0;  // a global of the host: "it's } { not ( balanced"
static FILE *log_file = NULL;

static void log_line(const char *text) { fprintf(log_file, "%s } {\n", text); }

namespace deep {
namespace inner {

template <int N> struct Power {
    static constexpr int value = 2 * Power<N - 1>::value;
};
template <> struct Power<0> {
    static constexpr int value = 1;
};

extern "C" __global__ void __launch_bounds__(128, 4) messy(const real *in, real *out, int n, int mode)
{
	// tabs, and a brace in a comment: {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef EARLY_OUT
	if (i >= n) {
		return;
#else
	if (i >= n) {
		return; // '"'
#endif
	}
	Pair p{in[i], twice(in[i])};
	p = p + p.scaled(Power<3>::value);
	if (n < 0) printf("}{)( %d\n", n);
	out[i] = add_op(p.x, mode == kScaled ? p.y : real(0)) + kTable[i & 3];
}

}  // namespace inner
}  // namespace deep

__global__ void other(float *p) { p[threadIdx.x] = mul_op(p[threadIdx.x], kWeights[0]); }

int main(int argc, char **argv)
{
    real *in, *out;
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    cudaMalloc(&in, n * sizeof(real));
    cudaMalloc(&out, n * sizeof(real));
    deep::inner::messy<<<(n + 127) / 128, 128>>>(in, out, n, kScaled);
    other<<<1, 32>>>((float *)in);
    log_file = stderr;
    if (g_counter) log_line("done");
    return 0;
}
#endif
