"""The text of an asm statement as PTX: instructions with their operands, declarations, blocks and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from fsr.backends.host.ptx.refusal import RefusedError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"([%$\w]+)\s*:(?!:)\s*")
_GUARD = re.compile(r"@\s*(!?)\s*(\S+)\s+")
_NAME = re.compile(r"%?[A-Za-z_$][\w$]*(?:\.[xyz])?")
_NUMBER = re.compile(r"[-+]?(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)")
_DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Register:
    """``%3`` (an operand of the statement) or a register's name."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    text: str

    @property
    def is_float(self) -> bool:
        """Whether it is one of floating point, by its bits or in decimals."""
        return self.text.lstrip("+-")[:2].lower() in ("0f", "0d") or _DECIMAL.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``."""

    parts: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``, the offset in bytes."""

    base: Register | Number
    offset: Argument | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """``d|p``."""

    first: Argument
    second: Argument


@dataclass(frozen=True, slots=True)
class Not:
    """``!p``."""

    of: Register


Argument = Register | Number | Vector | Address | Pair | Not


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``guard``: the predicate before it, and whether it is negated."""

    opcode: str
    arguments: tuple[Argument, ...]
    guard: tuple[Register, bool] | None = None
    words: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.opcode.split(".")))


@dataclass(frozen=True, slots=True)
class Declaration:
    """``.reg .type names;``"""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A place to branch to."""

    name: str


@dataclass(frozen=True, slots=True)
class Brace:
    """Where a block begins or ends."""

    opens: bool


Part = Instruction | Declaration | Label | Brace


def read_template(text: str) -> Iterator[Part]:
    """The parts of a template in order. Raises RefusedError with the words that were not understood."""
    text = _COMMENT.sub(" ", text).replace("%%", "%").strip()
    while text:
        if text[0] in "{};":
            if text[0] != ";":
                yield Brace(text[0] == "{")
            text = text[1:].lstrip()
        elif label := _LABEL.match(text):
            yield Label(label[1])
            text = text[label.end() :]
        else:
            one, mark, text = text.partition(";")
            if not mark:
                raise RefusedError(one.split()[0], "no semicolon ends it")
            yield _declaration(one) if one.startswith(".") else _instruction(one)
            text = text.lstrip()


def _declaration(text: str) -> Declaration:
    found = re.fullmatch(r"\.reg\s*\.(\w+)\s+(.*)", text, re.DOTALL)
    if found is None:
        raise RefusedError(text.split()[0])
    names = list[str]()
    for name in found[2].split(","):
        several = re.fullmatch(r"\s*([%\w$]+)\s*<\s*(\d+)\s*>\s*", name)
        names += [f"{several[1]}{n}" for n in range(min(int(several[2]), 256))] if several else [name.strip()]
    return Declaration(found[1], tuple(names))


def _instruction(text: str) -> Instruction:
    guard = None
    if found := _GUARD.match(text):
        guard = (Register(found[2]), bool(found[1]))
        text = text[found.end() :]
    opcode, _, rest = text.strip().replace("\n", " ").replace("\t", " ").partition(" ")
    try:
        return Instruction(opcode, tuple(_argument(one) for one in _pieces(rest) if one), guard)
    except ValueError as error:
        raise RefusedError(opcode, f"its operand {error} is not understood") from None


def _pieces(text: str, mark: str = ",") -> list[str]:
    pieces, depth = [""], 0
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if char == mark and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += char
    return [one.strip() for one in pieces]


def _argument(text: str) -> Argument:
    if text[0] == "{" and text[-1] == "}":
        return Vector(tuple(_argument(one) for one in _pieces(text[1:-1])))
    if text[0] == "[" and text[-1] == "]":
        return _address(text)
    if len(both := _pieces(text, "|")) == 2:
        return Pair(_argument(both[0]), _argument(both[1]))
    if text[0] == "!":
        return Not(_register(text[1:].strip()))
    if _NUMBER.fullmatch(text) or _DECIMAL.fullmatch(text):
        return Number(text)
    return _register(text)


def _address(text: str) -> Address:
    base, sign, offset = re.fullmatch(r"\[\s*([^\s+-]*)\s*([+-]?)\s*(.*?)\s*\]", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if not base:
        raise ValueError(text)
    first = _argument(base)
    if not isinstance(first, Register | Number) or (sign == "-" and not _NUMBER.fullmatch(offset)):
        raise ValueError(text)
    return Address(first, _argument(sign.replace("+", "") + offset.lstrip("+")) if sign else None)


def _register(text: str) -> Register:
    if not (re.fullmatch(r"%\d+", text) or _NAME.fullmatch(text)):
        raise ValueError(repr(text))
    return Register(text)
