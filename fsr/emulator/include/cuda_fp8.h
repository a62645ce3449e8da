// Stand-in for <cuda_fp8.h>: refused.
#error "fsr host device: 8-bit floating point (<cuda_fp8.h>) is not executed on the CPU"
