"""Comparisons and what is chosen by them: setp, set, selp, slct, testp."""

from __future__ import annotations

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import CXX, FLOATS, Registers, cxx
from fsr.backends.host.ptx.template import Instruction, Pair
from fsr.backends.host.ptx.words import Words

_ORDER = ("lt", "le", "gt", "ge")
_WHOLE = ("eq", "ne", *_ORDER)
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOAT = (*_WHOLE, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_JOINED = {"and": "&", "or": "|", "xor": "^"}
_TESTS = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def set_predicate(instruction: Instruction, use: Registers) -> str:
    """``setp.op.type p|q, a, b, c``."""
    words = Words(instruction)
    condition, other = _compared(instruction, words, words.type(), use)
    first, *_ = instruction.arguments
    if not isinstance(first, Pair):
        return use.put(first, condition)
    puts = f"{use.put(first.first, 'fsr_c')} {use.put(first.second, 'fsr_n')}"
    return f"{{ const bool fsr_c = {condition}, fsr_n = {other}; {puts} }}"


def set_value(instruction: Instruction, use: Registers) -> str:
    """``set.op.dtype.stype d, a, b``: all bits, or 1.0f."""
    words = Words(instruction)
    types = words.types()
    if len(types) != 2 or types[0] not in ("u32", "s32", "f32"):
        raise RefusedError(instruction.opcode)
    condition, _ = _compared(instruction, words, types[1], use)
    yes, no = ("1.0f", "0.0f") if types[0] == "f32" else ("~0u", "0u")
    return use.put(instruction.arguments[0], f"{condition} ? {yes} : {no}")


def _compared(instruction: Instruction, words: Words, type: str, use: Registers) -> tuple[str, str]:
    """The condition, and the same of the opposite comparison."""
    is_float = type in FLOATS
    if "x2" in type or type not in CXX or type == "pred":
        raise RefusedError(instruction.opcode, f"comparisons of .{type} are not known")
    known = {"u": (*_WHOLE, *_UNSIGNED), "s": _WHOLE, "b": _WHOLE[:2]}
    op = words.one(*(_FLOAT if is_float else known[type[0]]))
    joined, ftz = words.take(*_JOINED), words.take("ftz") if is_float else ""
    words.end()
    if len(instruction.arguments) != (4 if joined else 3):
        raise ValueError("another number of operands than it takes")
    use.need("fsr/ptx_registers.h" if type not in FLOATS or type in ("f32", "f64") else "fsr/ptx_halves.h")
    values = [use.value(one, type) for one in instruction.arguments[1:3]]
    if ftz:
        use.need("fsr/ptx_floats.h")
        values = [f"fsr_ptx::flushed({value})" for value in values]
    if type in ("f16", "bf16"):
        values = [f"(float){value}" for value in values]
    condition = f"fsr_ptx::{_UNSIGNED.get(op, op)}({', '.join(values)})"
    if not joined:
        return condition, f"!{condition}"
    last = use.predicate(instruction.arguments[3])
    return f"({condition} {_JOINED[joined]} ({last}))", f"(!{condition} {_JOINED[joined]} ({last}))"


def select(instruction: Instruction, use: Registers) -> str:
    """``selp.type d, a, b, p``."""
    words = Words(instruction)
    type = words.type()
    words.end()
    place, a, b, p = instruction.arguments
    use.need("fsr/ptx_registers.h")
    return use.put(place, f"{use.predicate(p)} ? {use.value(a, type)} : {use.value(b, type)}")


def select_by_sign(instruction: Instruction, use: Registers) -> str:
    """``slct.dtype.ctype d, a, b, c``: a where c is not negative."""
    words = Words(instruction)
    ftz, types = words.take("ftz"), words.types()
    words.end()
    if len(types) != 2 or types[1] not in ("s32", "f32"):
        raise RefusedError(instruction.opcode)
    place, a, b, c = instruction.arguments
    use.need("fsr/ptx_floats.h" if ftz else "fsr/ptx_registers.h")
    key = use.value(c, types[1])
    condition = f"{f'fsr_ptx::flushed({key})' if ftz else key} >= ({cxx(types[1])})0"
    return use.put(place, f"{condition} ? {use.value(a, types[0])} : {use.value(b, types[0])}")


def test(instruction: Instruction, use: Registers) -> str:
    """``testp.op.type p, a``."""
    words = Words(instruction)
    op, type = words.one(*_TESTS), words.type()
    words.end()
    if type not in ("f32", "f64"):
        raise RefusedError(instruction.opcode)
    place, a = instruction.arguments
    use.need("fsr/ptx_floats.h")
    return use.put(place, f"fsr_ptx::floats::is_{op}({use.value(a, type)})")
