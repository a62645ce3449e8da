"""Values from one register to another: mov, cvt, cvta."""

from __future__ import annotations

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import FLOATS, Registers, cxx
from fsr.backends.host.ptx.template import Instruction, Vector
from fsr.backends.host.ptx.words import Words

_ROUNDED = ("rn", "rz", "rm", "rp", "rna")
_WHOLE_ROUNDED = ("rni", "rzi", "rmi", "rpi")
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}


def move(instruction: Instruction, use: Registers) -> str:
    """``mov.type d, a``; of either a vector of parts."""
    words = Words(instruction)
    type = words.type()
    words.end()
    to, of = instruction.arguments
    use.need("fsr/ptx_registers.h")
    if not isinstance(to, Vector) and not isinstance(of, Vector):
        return use.put(to, use.value(of, type))
    if type[0] != "b" or isinstance(to, Vector) == isinstance(of, Vector):
        raise RefusedError(instruction.opcode)
    if isinstance(of, Vector):
        part = f"b{int(type[1:]) // len(of.parts)}"
        values = ", ".join(use.value(one, part) for one in of.parts)
        return use.put(to, f"fsr_ptx::joined<{cxx(type)}, {cxx(part)}>({{{values}}})")
    assert isinstance(to, Vector)
    part = cxx(f"b{int(type[1:]) // len(to.parts)}")
    puts = " ".join(use.put(one, f"fsr_ptx::part<{part}, {at}>(fsr_w)") for at, one in enumerate(to.parts))
    return f"{{ const auto fsr_w = {use.value(of, type)}; {puts} }}"


def convert(instruction: Instruction, use: Registers) -> str:
    """``cvt.modes.to.from d, a``; ``cvt.rn.f16x2.f32 d, a, b`` puts a into the upper half."""
    words = Words(instruction)
    modes = words.all(*_ROUNDED, *_WHOLE_ROUNDED, "ftz", "sat", "relu")
    types = words.types()
    words.end()
    if len(types) != 2:
        raise RefusedError(instruction.opcode)
    to, of = types
    _check(instruction, to, of, modes)
    use.need("fsr/ptx_conversions.h")
    kinds = f"fsr_ptx::Tf32, {cxx(of)}" if to == "tf32" else f"{cxx(_PAIRS.get(to, to))}, {cxx(of)}"
    flags = "".join(f" | fsr_ptx::k{mode[0].upper()}{mode[1:]}" for mode in modes)
    values = [use.value(one, of, narrow=of not in FLOATS) for one in instruction.arguments[1:]]
    if len(values) != (2 if to in _PAIRS else 1):
        raise ValueError("another number of operands than it takes")
    made = [f"fsr_ptx::cvt<{kinds}, 0{flags}>({value})" for value in values]
    result = f"{cxx(to)}{{{made[1]}, {made[0]}}}" if to in _PAIRS else made[0]
    return use.put(instruction.arguments[0], result, wide=to not in (*FLOATS, "tf32"))


def _check(instruction: Instruction, to: str, of: str, modes: tuple[str, ...]) -> None:
    """Raises RefusedError for pairs and modifiers that PTX has not, or the host device has not."""
    rounding = [mode for mode in modes if mode in (*_ROUNDED, *_WHOLE_ROUNDED)]
    bits = {kind: int("".join(c for c in kind.split("x")[0] if c.isdigit())) for kind in (to, of)}
    bare = [kind for kind in (to, of) if kind[0] == "b" and kind[1] != "f"]
    if len(rounding) > 1 or bare or of in ("tf32", *_PAIRS):
        raise RefusedError(instruction.opcode)
    if to == "tf32":
        good = of == "f32" and rounding in (["rna"], ["rn"], ["rz"])
    elif to in _PAIRS:
        good = of == "f32" and rounding in (["rn"], ["rz"])
    elif to in FLOATS and of in FLOATS:
        narrows = bits[to] < bits[of]
        allowed = _WHOLE_ROUNDED if to == of else _ROUNDED[:4] if narrows else ()
        good = set(rounding) <= set(allowed) and (bool(rounding) or not narrows) and (to == of or bits[to] != bits[of])
    elif to in FLOATS:
        good = len(rounding) == 1 and rounding[0] in _ROUNDED[:4]
    elif of in FLOATS:
        good = len(rounding) == 1 and rounding[0] in _WHOLE_ROUNDED
    else:
        good = not rounding
    if not good or ("relu" in modes and to not in ("f16", "bf16", "tf32", *_PAIRS)):
        raise RefusedError(instruction.opcode, "these modifiers and types are not known together")


def convert_address(instruction: Instruction, use: Registers) -> str:
    """``cvta``: between addresses of a space and generic ones."""
    words = Words(instruction)
    back, space = words.take("to"), words.one("global", "shared", "shared::cta")
    type = words.type()
    words.end()
    place, of = instruction.arguments
    use.need("fsr/ptx_memory.h")
    if type != "u64":
        raise RefusedError(instruction.opcode, "addresses have 64 bits here")
    value = use.value(of, type)
    if space != "global":
        value = f"fsr_ptx::{'to_shared' if back else 'of_shared'}({value})"
    return use.put(place, value)
