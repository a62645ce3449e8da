"""Arithmetic, bits and other instructions whose result depends on their operands alone.

What is allowed together is that of the PTX ISA 8.7; the C++ functions bear the instructions' names and take the type
and the modifiers as template arguments (fsr/emulator/include/fsr/ptx_integers.h, ptx_floats.h, ptx_halves.h).
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import FLOATS, Registers, cxx
from fsr.backends.host.ptx.template import Argument, Instruction
from fsr.backends.host.ptx.words import Words

_WHOLE = "u16 s16 u32 s32 u64 s64"
_WORD = "u32 s32 u64 s64"
_BITS = "b16 b32 b64"
_HALF = "f16 f16x2 bf16 bf16x2"
_ROUNDED = "rn rz rm rp"
_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_MODES = ("rn", "rz", "rm", "rp", "ftz", "sat", "relu", "NaN", "approx", "full")


@dataclass(frozen=True, slots=True)
class _Rule:
    """``operands``: the type of each, T for the instruction's own and W for the one twice as wide."""

    types: str
    operands: str
    modes: str = ""
    needed: str = ""  # one of these modes must be there

    def fits(self, type: str, modes: tuple[str, ...]) -> bool:
        good = type in self.types.split() and set(modes) <= set(self.modes.split())
        return good and (not self.needed or any(mode in self.needed.split() for mode in modes))


_APPROXIMATE = [_Rule("f32", "T", "approx ftz", "approx")]
_ROOT = [*_APPROXIMATE, _Rule("f32", "T", f"{_ROUNDED} ftz", _ROUNDED), _Rule("f64", "T", _ROUNDED, _ROUNDED)]
_SUM = [
    _Rule("u16 s16 u32 u64 s64", "T T"), _Rule("s32", "T T", "sat"), _Rule("f32", "T T", f"{_ROUNDED} ftz sat"),
    _Rule("f64", "T T", _ROUNDED), _Rule("f16 f16x2", "T T", "rn ftz sat"), _Rule("bf16 bf16x2", "T T", "rn"),
]  # fmt: skip
_CHOICE = [
    _Rule(_WHOLE, "T T"), _Rule("f32", "T T", "ftz NaN"), _Rule("f64", "T T"), _Rule("f16 f16x2", "T T", "ftz NaN"),
    _Rule("bf16 bf16x2", "T T", "NaN"),
]  # fmt: skip
_FMA = [
    _Rule("f32", "T T T", f"{_ROUNDED} ftz sat", _ROUNDED), _Rule("f64", "T T T", _ROUNDED, _ROUNDED),
    _Rule("f16 f16x2", "T T T", "rn ftz sat relu", "rn"), _Rule("bf16 bf16x2", "T T T", "rn relu", "rn"),
]  # fmt: skip
_RULES: dict[str, list[_Rule]] = {
    "add": _SUM, "sub": _SUM, "mul": _SUM[2:], "fma": _FMA,
    "mad": [_Rule("f32", "T T T", f"{_ROUNDED} ftz sat"), *_FMA[1:2]],
    "mul.lo": [_Rule(_WHOLE, "T T")], "mul.hi": [_Rule(_WHOLE, "T T")], "mul.wide": [_Rule("u16 s16 u32 s32", "T T")],
    "mad.lo": [_Rule(_WHOLE, "T T T")], "mad.hi": [_Rule(_WHOLE, "T T T"), _Rule("s32", "T T T", "sat")],
    "mad.wide": [_Rule("u16 s16 u32 s32", "T T W")],
    "mul24.lo": [_Rule("u32 s32", "T T")], "mul24.hi": [_Rule("u32 s32", "T T")],
    "div": [_Rule(_WHOLE, "T T"), _Rule("f32", "T T", "approx full ftz", "approx full"),
            _Rule("f32", "T T", f"{_ROUNDED} ftz", _ROUNDED), _Rule("f64", "T T", _ROUNDED, _ROUNDED)],
    "rem": [_Rule(_WHOLE, "T T")], "sad": [_Rule(_WHOLE, "T T T")],
    "min": _CHOICE, "max": _CHOICE,
    "abs": [_Rule("s16 s32 s64", "T"), _Rule("f32", "T", "ftz"), _Rule("f64", "T"), _Rule("f16 f16x2", "T", "ftz"),
            _Rule("bf16 bf16x2", "T")],
    "neg": [_Rule("s16 s32 s64", "T"), _Rule("f32", "T", "ftz"), _Rule("f64", "T"), _Rule("f16 f16x2", "T", "ftz"),
            _Rule("bf16 bf16x2", "T")],
    "rcp": _ROOT, "sqrt": _ROOT, "rsqrt": [*_APPROXIMATE, _Rule("f64", "T", "approx", "approx")],
    "sin": _APPROXIMATE, "cos": _APPROXIMATE, "lg2": _APPROXIMATE,
    "ex2": [*_APPROXIMATE, _Rule("f16 f16x2", "T", "approx", "approx"),
            _Rule("bf16 bf16x2", "T", "approx ftz", "approx")],
    "tanh": [_Rule("f32", "T", "approx", "approx"), _Rule(_HALF, "T", "approx", "approx")],
    "copysign": [_Rule("f32 f64", "T T")],
    **{name: [_Rule(f"pred {_BITS}", "T T")] for name in ("and", "or", "xor")},
    "not": [_Rule(f"pred {_BITS}", "T")], "cnot": [_Rule(_BITS, "T")],
    "shl": [_Rule(_BITS, "T u32")], "shr": [_Rule(f"{_BITS} {_WHOLE}", "T u32")],
    **{f"shf.{side}.{end}": [_Rule("b32", "T T u32")] for side in "lr" for end in ("clamp", "wrap")},
    "lop3": [_Rule("b32", "T T T u32")], "prmt": [_Rule("b32", "T T u32")],
    **{f"prmt.{mode}": [_Rule("b32", "T T u32")] for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")},
    "bfe": [_Rule(_WORD, "T u32 u32")], "bfi": [_Rule("b32 b64", "T T u32 u32")], "brev": [_Rule("b32 b64", "T")],
    "bfind": [_Rule(_WORD, "T")], "bfind.shiftamt": [_Rule(_WORD, "T")], "clz": [_Rule("b32 b64", "T")],
    "popc": [_Rule("b32 b64", "T")],
    **{f"szext.{end}": [_Rule("u32 s32", "T u32")] for end in ("clamp", "wrap")},
    **{f"bmsk.{end}": [_Rule("b32", "T u32")] for end in ("clamp", "wrap")},
}  # fmt: skip
_FORMS = (
    "lo", "hi", "wide", "l", "r", "clamp", "wrap", "shiftamt", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16",
)  # fmt: skip
_CARRIED = {"add", "addc", "sub", "subc", "mad", "madc"}
ROOTS = frozenset({name.partition(".")[0] for name in _RULES} | _CARRIED | {"dp4a", "dp2a"})


def function(instruction: Instruction, use: Registers) -> str:
    """The C++ statement. Raises RefusedError and ValueError."""
    words, root = Words(instruction), instruction.words[0]
    if root in ("dp4a", "dp2a"):
        return _dot(instruction, words, use)
    if words.take("cc") or root in ("addc", "subc", "madc"):
        return _with_carry(instruction, use)
    name = ".".join([root, *words.all(*_FORMS)])
    modes, type = words.all(*_MODES), words.type()
    words.end()
    rule = next((rule for rule in _RULES.get(name, ()) if rule.fits(type, modes)), None)
    if rule is None:
        raise RefusedError(instruction.opcode, f"of {name} the host device knows {_known(name)}")
    types = [_WIDE[type] if of == "W" else type if of == "T" else of for of in rule.operands.split()]
    values = _values(instruction, types, use)
    space = "halves" if type in _HALF.split() else "floats" if type in FLOATS else "integers"
    use.need(f"fsr/ptx_{space}.h")
    mode = " | ".join(f"fsr_ptx::k{mode[0].upper()}{mode[1:]}" for mode in modes)
    call = f"fsr_ptx::{space}::{name.replace('.', '_')}_<{cxx(type)}{f', {mode}' if mode else ''}>({', '.join(values)})"
    return use.put(instruction.arguments[0], call)


def _known(name: str) -> str:
    rules = _RULES.get(name, ())
    told = (f".{rule.types.replace(' ', ' .')} with {rule.modes or 'no modifier'}" for rule in rules)
    return "; ".join(told) or "nothing"


def _values(instruction: Instruction, types: list[str], use: Registers) -> list[str]:
    arguments: tuple[Argument, ...] = instruction.arguments[1:]
    if len(arguments) != len(types):
        raise ValueError(f"it takes {len(types)} operands beside its result")
    return [use.value(one, type) for one, type in zip(arguments, types, strict=True)]


def _dot(instruction: Instruction, words: Words, use: Registers) -> str:
    part = words.take("lo", "hi") if instruction.words[0] == "dp2a" else ""
    types = words.types()
    words.end()
    if len(types) != 2 or not set(types) <= {"u32", "s32"} or (instruction.words[0] == "dp2a" and not part):
        raise RefusedError(instruction.opcode)
    use.need("fsr/ptx_integers.h")
    sums = "s32" if "s32" in types else "u32"
    name = f"{instruction.words[0]}_{part and part + '_'}<{cxx(types[0])}, {cxx(types[1])}>"
    values = ", ".join(_values(instruction, [*types, sums], use))
    return use.put(instruction.arguments[0], f"fsr_ptx::integers::{name}({values})")


def _with_carry(instruction: Instruction, use: Registers) -> str:
    words, root = Words(instruction), instruction.words[0]
    sets, part = words.take("cc"), words.take("lo", "hi")
    type = words.type()
    words.end()
    takes = root.endswith("c")
    if type not in _WORD.split() or (root[:3] == "mad") != bool(part):
        raise RefusedError(instruction.opcode)
    if takes and not use.carries:
        raise RefusedError(instruction.opcode, "no instruction of its statement has set the carry before")
    use.carries = use.carries or bool(sets)
    use.need("fsr/ptx_integers.h")
    unsigned = cxx(type.replace("s", "u") if part != "hi" else type)
    values = ", ".join(use.value(one, type) for one in instruction.arguments[1:])
    if len(instruction.arguments) != (4 if part else 3):
        raise ValueError("another number of operands than it takes")
    name = f"{root[:3]}{f'_{part}' if part else ''}_carrying<{unsigned}>"
    flags = f"{'fsr_carry' if takes else 'false'}, {'fsr_carry' if sets else 'fsr_dropped'}"
    return use.put(instruction.arguments[0], f"fsr_ptx::integers::{name}({values}, {flags})")
