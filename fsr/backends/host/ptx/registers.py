"""The registers of an asm statement as C++ variables: what instructions read, write and are told of memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.statement import Operand
from fsr.backends.host.ptx.template import Address, Argument, Not, Number, Register, Vector

# The variable that holds a register, by constraint and by declared type.
_CONSTRAINTS = {"h": "B16", "r": "B32", "l": "B64", "f": "float", "d": "double"}
_DECLARED = {
    **{f"{kind}{bits}": f"B{bits}" for kind in "bus" for bits in (16, 32, 64)},
    "b8": "B8", "u8": "B8", "s8": "B8", "f16": "B16", "f16x2": "B32", "bf16": "B16", "bf16x2": "B32",
    "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
# Instruction types as C++.
CXX = {
    **{f"{kind}{bits}": f"B{bits}" for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"S{bits}" for bits in (8, 16, 32, 64)}, "f32": "float", "f64": "double", "f16": "__half",
    "bf16": "__nv_bfloat16", "f16x2": "Both<__half>", "bf16x2": "Both<__nv_bfloat16>", "tf32": "B32", "pred": "bool",
}  # fmt: skip
FLOATS = ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")
_SPECIAL = {
    **{f"%{name}.{axis}": f"(fsr_ptx::B32){variable}.{axis}" for axis in "xyz" for name, variable in (
        ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))},
    "%laneid": "fsr_lane()", "WARP_SZ": "32u", "%WARP_SZ": "32u",
    "%lanemask_eq": "(1u << fsr_lane())", "%lanemask_lt": "((1u << fsr_lane()) - 1u)",
    "%lanemask_le": "((2u << fsr_lane()) - 1u)", "%lanemask_gt": "~((2u << fsr_lane()) - 1u)",
    "%lanemask_ge": "~((1u << fsr_lane()) - 1u)",
}  # fmt: skip


def cxx(type: str) -> str:
    """The C++ type of an instruction's. Raises RefusedError for one that the host device does not know."""
    if type not in CXX:
        raise RefusedError(f".{type}", "a type without a host meaning")
    name = CXX[type]
    return name if name[0] == "_" or name[0].islower() else f"fsr_ptx::{name}"


class Registers:
    """The variables of one statement: its operands, and what its template declares, by block."""

    def __init__(self, operands: Sequence[Operand]) -> None:
        self._operands = operands
        self._declared: list[dict[str, str]] = [{}]
        self._count = 0
        self.headers = dict[str, None]()
        self.carries = False  # whether an instruction of the statement has set the carry

    def open(self) -> None:
        """A block begins."""
        self._declared.append({})

    def close(self) -> None:
        """It ends. Raises RefusedError where none has begun."""
        if len(self._declared) == 1:
            raise RefusedError("}")
        self._declared.pop()

    def declare(self, type: str, names: Sequence[str]) -> str:
        """The C++ declaration of registers."""
        if type not in _DECLARED:
            raise RefusedError(f".reg .{type}", "a type without a host meaning")
        places = []
        for name in names:
            self._count += 1
            self._declared[-1][name] = f"fsr_v{self._count}"
            places.append(f"fsr_v{self._count}")
        holder = _DECLARED[type]
        return f"{holder if holder[0].islower() else f'fsr_ptx::{holder}'} {', '.join(places)};"

    def put(self, to: Argument, value: str, *, wide: bool = False) -> str:
        """The C++ statement that gives a register its value; nothing for ``_``. ``wide``: it may have more bits."""
        if not isinstance(to, Register):
            raise ValueError("its result is no register")
        if to.name == "_":
            return ""
        return f"fsr_ptx::put{'_wide' if wide else ''}({self._variable(to, written=True)}, {value});"

    def _variable(self, of: Register, *, written: bool = False) -> str:
        for names in reversed(self._declared):
            if of.name in names:
                return names[of.name]
        number = re.fullmatch(r"%(\d+)", of.name)
        if number is None or int(number[1]) >= len(self._operands):
            raise ValueError(f"{of.name} is not declared")
        if written and not self._operands[int(number[1])].written:
            raise ValueError(f"{of.name} is an input")
        return f"fsr_r{number[1]}"

    def value(self, of: Argument, type: str, *, narrow: bool = False) -> str:
        """The C++ expression of an operand read as a type. ``narrow``: a wider register gives its low bits."""
        if isinstance(of, Number):
            return _number(of, type)
        if not isinstance(of, Register):
            raise ValueError("no single value")
        if of.name in _SPECIAL:
            return f"fsr_ptx::{'low' if narrow else 'as'}<{cxx(type)}>({_SPECIAL[of.name]})"
        variable = self._variable(of)
        if type == "pred":
            return variable
        if self.is_constant(of):
            if type in FLOATS:
                raise ValueError("a constant integer")
            return f"({cxx(type)}){variable}"
        return f"fsr_ptx::{'low' if narrow else 'as'}<{cxx(type)}>({variable})"

    def is_constant(self, of: Argument) -> bool:
        """Whether it is an operand that the compiler knows (``n``)."""
        number = re.fullmatch(r"%(\d+)", of.name) if isinstance(of, Register) else None
        at = int(number[1]) if number else len(self._operands)
        return at < len(self._operands) and self._operands[at].kind in ("n", "i")

    def predicate(self, of: Argument) -> str:
        """The C++ condition of ``p`` or ``!p``."""
        return f"!{self.value(of.of, 'pred')}" if isinstance(of, Not) else self.value(of, "pred")

    def parts(self, of: Argument) -> tuple[Argument, ...]:
        """The elements of a vector; a single operand is one."""
        return of.parts if isinstance(of, Vector) else (of,)

    def address(self, of: Argument) -> str:
        """The C++ arguments ``address, offset``."""
        if not isinstance(of, Address):
            raise ValueError("no address in brackets")
        if isinstance(of.base, Number):
            raise ValueError("a literal address")
        variable = self._variable(of.base)
        return f"{variable}, {self.value(of.offset, 's64') if of.offset is not None else '0'}"

    def need(self, header: str) -> None:
        """The statement's C++ is written in terms of this header."""
        self.headers[header] = None


def constraint_type(operand: Operand) -> str:
    """The C++ type of an operand's variable. Raises RefusedError for constraints without a host meaning."""
    if operand.kind in ("n", "i") and not operand.written:
        return "long long"
    if operand.kind not in _CONSTRAINTS or operand.constraint.count("%"):
        raise RefusedError(f'an operand "{operand.constraint}"', "the host device knows h, r, l, f, d and n")
    holder = _CONSTRAINTS[operand.kind]
    return holder if holder[0].islower() else f"fsr_ptx::{holder}"


def _number(number: Number, type: str) -> str:
    text, sign = number.text.lstrip("+-").rstrip("U"), "-" if number.text.startswith("-") else ""
    if number.is_float:
        if text[:2] in ("0f", "0F"):
            value = f"fsr::bits<float>({int(text[2:], 16):#x}u)"
        elif text[:2] in ("0d", "0D"):
            value = f"fsr::bits<double>({int(text[2:], 16):#x}ull)"
        else:
            value = text
        if type not in ("f32", "f64"):
            if type in ("b32", "b64"):
                return f"fsr_ptx::as<{cxx(type)}>(({'float' if type == 'b32' else 'double'}){sign}{value})"
            raise ValueError(f"{number.text} is a number of floating point")
        return f"({cxx(type)}){sign}{value}"
    if type in FLOATS or type == "pred":
        raise ValueError(f"{number.text} is an integer")
    return f"({cxx(type)}){sign}{int(text, 8 if re.fullmatch('0[0-7]+', text) else 0)}ull"
