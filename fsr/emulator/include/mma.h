// Stand-in for <mma.h>: refused.
#error "fsr host device: tensor-core matrix arithmetic (<mma.h>, wmma) is not executed on the CPU"
