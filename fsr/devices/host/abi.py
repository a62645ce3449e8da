"""The C structures of fsr/emulator/runtime, as ctypes; see state.h and runtime.h for their meaning."""

from __future__ import annotations

import ctypes

FAULT_KINDS = {
    1: "divergent-barrier",
    2: "trap",
    3: "unsupported",
    4: "out-of-bounds",
    5: "crash",  # stack overflow
    6: "crash",  # arithmetic
    7: "crash",  # illegal instruction
    8: "out-of-bounds",  # dynamic shared memory
}
STACK_OVERFLOW, ARITHMETIC, ILLEGAL_INSTRUCTION, OUT_OF_BOUNDS = 5, 6, 7, 4


class FaultRecord(ctypes.Structure):
    """What the running kernel did wrong; ``kind`` 0: nothing."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("pc", ctypes.c_uint64),
        ("writes", ctypes.c_int32),
        ("thread", ctypes.c_uint32),
        ("block", ctypes.c_uint32 * 3),
        ("text", ctypes.c_char * 200),
    )


class Entry(ctypes.Structure):
    """``fsr_entry``: how to run one CUDA thread of a kernel, and its parameters."""

    _fields_ = (
        ("thread", ctypes.c_void_p),
        ("count", ctypes.c_uint),
        ("sizes", ctypes.POINTER(ctypes.c_uint)),
        ("kinds", ctypes.c_char_p),
    )
