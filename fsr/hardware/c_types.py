"""The element types of kernels: what contracts call them (NumPy's names), how CUDA C++ spells them, and their sizes.

The one table from which sizes, spellings, vector types and headers are taken everywhere. Sizes are those of 64-bit
Linux, where ``long`` has 8 bytes (CUDA C++ Programming Guide, "Built-in Vector Types"; cuda_fp16.h, cuda_bf16.h).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementType:
    """``dtype``: the contract's name; ``spelling``: how fsr writes it in C++; ``others``: further names for it;
    ``vectors``: names of its built-in vectors without their count ('float' of float4); ``pairs``: of those that have
    two lanes only; ``header``: where it is declared, '' where nothing need be included."""

    dtype: str
    bytes: int
    spelling: str
    others: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    header: str = ""


BOOL = ElementType("bool", 1, "bool")
NUMBERS = (
    ElementType("float32", 4, "float", vectors=("float",)),
    ElementType("float64", 8, "double", vectors=("double",)),
    ElementType("float16", 2, "__half", ("half", "at::Half", "c10::Half"), pairs=("half2", "__half2"),
                header="cuda_fp16.h"),
    ElementType("bfloat16", 2, "__nv_bfloat16", ("nv_bfloat16", "at::BFloat16", "c10::BFloat16"),
                pairs=("__nv_bfloat162", "nv_bfloat162"), header="cuda_bf16.h"),
    ElementType("int8", 1, "signed char", ("char", "int8_t"), ("char",)),
    ElementType("uint8", 1, "unsigned char", ("uint8_t", "uchar", "u_int8_t", "u_char"), ("uchar",)),
    ElementType("int16", 2, "short", ("int16_t",), ("short",)),
    ElementType("uint16", 2, "unsigned short", ("uint16_t", "ushort", "u_int16_t", "u_short"), ("ushort",)),
    ElementType("int32", 4, "int", ("signed", "int32_t"), ("int",)),
    ElementType("uint32", 4, "unsigned int", ("unsigned", "uint32_t", "uint", "u_int32_t", "u_int"),
                ("uint",)),
    ElementType("int64", 8, "long long", ("long", "int64_t", "ptrdiff_t", "ssize_t", "intptr_t"),
                ("long", "longlong")),
    ElementType("uint64", 8, "unsigned long long",
                ("unsigned long", "uint64_t", "size_t", "ulong", "u_int64_t", "u_long", "uintptr_t"),
                ("ulong", "ulonglong")),
)  # fmt: skip

BY_DTYPE: dict[str, ElementType] = {t.dtype: t for t in (*NUMBERS, BOOL)}
BY_SPELLING: dict[str, ElementType] = {name: t for t in (*NUMBERS, BOOL) for name in (t.spelling, *t.others)}
LANES: dict[str, tuple[ElementType, int]] = {
    **{f"{name}{count}": (t, count) for t in NUMBERS for name in t.vectors for count in (2, 3, 4)},
    **{name: (t, 2) for t in NUMBERS for name in t.pairs},
}
"""Built-in vector types: their element and how many of it."""


def narrow_integers() -> list[str]:
    """How integers of 8 and 16 bits, and vectors of them, are written, in single words."""
    types = [t for t in NUMBERS if "int" in t.dtype and t.bytes < 4]
    words = {word for t in types for name in (t.spelling, *t.others) for word in name.split()} - {"signed", "unsigned"}
    return sorted(words | {f"{name}{count}" for t in types for name in t.vectors for count in range(1, 5)})


def element_bytes(spelling: str) -> int | None:
    """Bytes of the number type that C++ spells so (without const and stars). None for anything else, bool too: code
    that moves bytes about might give one a value that no bool has."""
    known = BY_SPELLING.get(spelling)
    return None if known is None or known is BOOL else known.bytes


def dtype_bytes(dtype: str) -> int | None:
    """Bytes of the number type that contracts call so; None for anything else, bool too."""
    known = BY_DTYPE.get(dtype)
    return None if known is None or known is BOOL else known.bytes
