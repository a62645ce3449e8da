// Stand-in for CUDA's <cooperative_groups/memcpy_async.h>: refused.
#error "fsr host device: asynchronous copy (<cooperative_groups/memcpy_async.h>) is not executed on the CPU"
