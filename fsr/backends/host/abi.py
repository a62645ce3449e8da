"""The C structures of fsr/emulator/runtime, as ctypes; see state.h and runtime.h for their meaning."""

from __future__ import annotations

import ctypes

from fsr.records import FaultKind

FAULT_KINDS = {
    1: FaultKind.DIVERGENT_BARRIER,
    2: FaultKind.TRAP,
    3: FaultKind.UNSUPPORTED,
    4: FaultKind.OUT_OF_BOUNDS,
    5: FaultKind.CRASH,  # stack overflow
    6: FaultKind.CRASH,  # arithmetic
    7: FaultKind.CRASH,  # illegal instruction
    8: FaultKind.OUT_OF_BOUNDS,  # dynamic shared memory
    9: FaultKind.HANG,
    10: FaultKind.UNSUPPORTED,  # more blocks wait for each other than fit here
    11: FaultKind.MISALIGNED,
    12: FaultKind.STARVED,
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


class Site(ctypes.Structure):
    """The part of recorder.h's Site that the caller reads; rows are ``stride`` bytes apart."""

    _fields_ = (
        ("pc", ctypes.c_uint64),
        ("first_address", ctypes.c_uint64),
        ("line", ctypes.c_int32),
        ("space", ctypes.c_uint32),
        ("access", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("region", ctypes.c_uint32),
        ("requests", ctypes.c_double),
        ("lanes", ctypes.c_double),
        ("sectors", ctypes.c_double),
        ("unique_sectors", ctypes.c_double),
        ("wavefronts", ctypes.c_double),
        ("serial", ctypes.c_double),
        ("max_same", ctypes.c_double),
        ("block_sectors", ctypes.c_double),
        ("lines", ctypes.c_double),
    )


class BasicBlock(ctypes.Structure):
    """How often warps ran the basic block whose instrumentation returns to ``pc``."""

    _fields_ = (("pc", ctypes.c_uint64), ("warps", ctypes.c_double))


class FoundFault(ctypes.Structure):
    """A fault that the recorder found; kind as in recorder.h's Finding."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("pc", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("region", ctypes.c_int32),
        ("thread", ctypes.c_uint32),
        ("other", ctypes.c_uint32),
        ("block", ctypes.c_uint32 * 3),
        ("other_earlier_block", ctypes.c_uint32),
        ("other_at", ctypes.c_uint32),
        ("text", ctypes.c_char * 160),
    )


class RecordSummary(ctypes.Structure):
    """What a recorded launch executed."""

    _fields_ = (
        ("executed", ctypes.c_uint64), ("barriers", ctypes.c_double), ("warp_syncs", ctypes.c_double),
        ("tensor", ctypes.c_double),
    )  # fmt: skip


class Order(ctypes.Structure):
    """In which order blocks and threads run: state.h's Order."""

    _fields_ = (
        ("seed", ctypes.c_uint64),
        ("resident", ctypes.c_uint32),
        ("quantum", ctypes.c_uint32),
        ("stale", ctypes.c_uint32),
        ("backward", ctypes.c_uint32),
        ("blocks", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("watched", ctypes.c_uint32),
        ("stalled", ctypes.c_uint32),
        ("chosen", ctypes.c_uint64),
        ("budget", ctypes.c_uint64),
    )


class Entry(ctypes.Structure):
    """``fsr_entry``: how to run one CUDA thread of a kernel, and its parameters."""

    _fields_ = (
        ("thread", ctypes.c_void_p),
        ("count", ctypes.c_uint),
        ("sizes", ctypes.POINTER(ctypes.c_uint)),
        ("kinds", ctypes.c_char_p),
    )
