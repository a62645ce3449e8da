// Stand-in for <cub/cub.cuh>: refused.
#error "fsr host device: the CUB library (<cub/cub.cuh>) is not executed on the CPU"
