// Stand-in for <cuda_pipeline.h>: refused.
#error "fsr host device: asynchronous copy (<cuda_pipeline.h>) is not executed on the CPU"
