"""What a CUDA launch may ask for on every GPU from compute capability 7.0 on.

Source: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability". What differs between GPUs
is in :mod:`fsr.hardware.gpus`.
"""

from __future__ import annotations

MAX_THREADS = 1024  # a block
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_BYTES = 48 * 1024  # a block; more must be dynamic, and the kernel must have opted in
PARTIAL_SUMS_BYTES = 2 * 1024  # of it, left to the partial results that fsr's rewrites exchange between warps
ASYNC_COPIES_FROM = 80  # capability, as of bfloat16 and tf32 on tensor cores
ATOMIC_PACKS_FROM = 90  # capability, of atomicAdd of a float2 and a float4
WGMMA_AT = 90  # capability, exactly: neither before nor after
REGISTERS_PER_SM = 65536
MAX_REPEATS = 1 << 16  # of a launch in a plan: fsr's own limit, a second of nothing but launching
MAX_REGISTERS = 255  # a thread
