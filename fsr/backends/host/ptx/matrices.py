"""Fragments of a warp: ldmatrix, stmatrix, movmatrix, mma.sync. Layouts: PTX ISA 8.7, "Matrix multiply-accumulate"."""

from __future__ import annotations

import re

from fsr.backends.host.ptx.memory import SPACES
from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import Registers
from fsr.backends.host.ptx.template import Argument, Instruction
from fsr.backends.host.ptx.words import Words

_FACTORS = {
    "f16": "__half", "bf16": "__nv_bfloat16", "tf32": "nvcuda::wmma::precision::tf32", "s8": "signed char",
    "u8": "unsigned char", "f64": "double",
}  # fmt: skip
_SUMS = {"f16": "__half", "f32": "float", "s32": "int", "f64": "double"}
# Shapes, and bits of a factor's element and of a sum's in a register, by the type of A.
_SHAPES = {
    "f16": ("m16n8k8", "m16n8k16"), "bf16": ("m16n8k8", "m16n8k16"), "tf32": ("m16n8k4", "m16n8k8"),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"), "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
}  # fmt: skip
_SUMS_OF = {"f16": "f16 f32", "bf16": "f32", "tf32": "f32", "s8": "s32", "u8": "s32", "f64": "f64"}


def multiply(instruction: Instruction, use: Registers) -> str:
    """``mma.sync.aligned.shape.row.col.d.a.b.c``."""
    words = Words(instruction)
    for word in ("sync", "aligned", "row", "col"):
        words.one(word)
    saturates = words.take("satfinite")
    shape = words.take(*{shape for shapes in _SHAPES.values() for shape in shapes})
    types = words.types()
    words.end()
    if len(types) != 4 or types[1] not in _SHAPES or shape not in _SHAPES[types[1]]:
        raise RefusedError(instruction.opcode, "its shape and types are not known together")
    d, a, b, c = types
    known = _SUMS_OF[a].split()
    if d not in known or c not in known or {a, b} not in ({a}, {"s8", "u8"}) or (saturates and d != "s32"):
        raise RefusedError(instruction.opcode, "its types are not known together")
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    sizes = [_registers(m * n, d), _registers(m * k, a), _registers(n * k, b), _registers(m * n, c)]
    parts = [use.parts(one) for one in instruction.arguments]
    if [len(one) for one in parts] != sizes:
        raise ValueError(f"it takes {', '.join(map(str, sizes))} registers")
    use.need("fsr/ptx_matrices.h")
    word = "b64" if a == "f64" else "b32"
    values = [", ".join(use.value(x, word) for x in of) for of in parts[1:]]
    puts = " ".join(use.put(x, f"fsr_d.at[{i}]") for i, x in enumerate(parts[0]))
    names = f"{_FACTORS[a]}, {_FACTORS[b]}, {_SUMS[c]}, {_SUMS[d]}, {m}, {n}, {k}"
    call = f"fsr_ptx::mma<{names}>({', '.join(f'{{{{{v}}}}}' for v in values)}, {'true' if saturates else 'false'})"
    return f"{{ const auto fsr_d = {call}; {puts} }}"


def _registers(elements: int, type: str) -> int:
    """How many a lane has of a matrix."""
    bits = {"s8": 8, "u8": 8, "f16": 16, "bf16": 16, "f64": 64}.get(type, 32)
    return elements * min(bits, 32) // (32 * 32) if bits < 64 else elements // 32


def _lanes(of: Argument, count: int, use: Registers) -> tuple[Argument, ...]:
    """A lane's registers of so many matrices."""
    parts = use.parts(of)
    if len(parts) != count:
        raise ValueError(f"it takes {count} registers")
    return parts


def load(instruction: Instruction, use: Registers) -> str:
    """``ldmatrix.sync.aligned.m8n8.xN.trans.shared.b16 r, [p]``."""
    count, transposed, space = _matrices(instruction)
    to, at = instruction.arguments
    parts = _lanes(to, count, use)
    use.need("fsr/ptx_matrices.h")
    call = f"fsr_ptx::ldmatrix<{count}, {transposed}, fsr_ptx::{space}>({use.address(at)})"
    puts = " ".join(use.put(x, f"fsr_x.at[{i}]") for i, x in enumerate(parts))
    return f"{{ const auto fsr_x = {call}; {puts} }}"


def store(instruction: Instruction, use: Registers) -> str:
    """``stmatrix``, the same the other way."""
    count, transposed, space = _matrices(instruction)
    at, of = instruction.arguments
    parts = _lanes(of, count, use)
    use.need("fsr/ptx_matrices.h")
    values = ", ".join(use.value(x, "b32") for x in parts)
    return f"fsr_ptx::stmatrix<{count}, {transposed}, fsr_ptx::{space}>({use.address(at)}, {{{{{values}}}}});"


def _matrices(instruction: Instruction) -> tuple[int, str, str]:
    words = Words(instruction)
    for word in ("sync", "aligned", "m8n8", "b16"):
        words.one(word)
    count, transposed = int(words.one("x1", "x2", "x4")[1:]), "true" if words.take("trans") else "false"
    space = SPACES[words.take("shared", "shared::cta")]
    words.end()
    return count, transposed, space


def transpose(instruction: Instruction, use: Registers) -> str:
    """``movmatrix.sync.aligned.m8n8.trans.b16 d, a``."""
    words = Words(instruction)
    for word in ("sync", "aligned", "m8n8", "trans", "b16"):
        words.one(word)
    words.end()
    to, of = instruction.arguments
    use.need("fsr/ptx_matrices.h")
    return use.put(to, f"fsr_ptx::movmatrix({use.value(of, 'b32')})")
