"""Reading LLVM's text line by line: names, types, arguments, sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TYPES = ("i1", "i8", "i16", "i32", "i64", "half", "float", "double")  # of values that are followed
ARITHMETIC = frozenset(
    re.findall(r"\w+", "fadd fsub fmul fdiv frem add sub mul sdiv udiv srem urem shl lshr ashr and or xor")
)  # fmt: skip
CASTS = frozenset(
    re.findall(r"\w+", "trunc zext sext fpext fptrunc fptosi fptoui sitofp uitofp bitcast ptrtoint inttoptr")
)
VALUE = r"%(?:[\w.$-]+|\"[^\"]*\")"
MADE = re.compile(rf"^\s*({VALUE}) = (?:tail |musttail |notail )?(\w+) (.*)$")  # a value, the operation, the rest
_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8, "ptr": 8}


def plain_name(name: str, type_: str) -> str:
    """A function of C's library without the letter of its type."""
    return name[:-1] if type_ == "float" and name.endswith("f") and name not in ("erf",) else name


def joined(lines: Iterable[str]) -> Iterator[str]:
    """Instructions that go over several lines (switch) on one."""
    held = ""
    for line in lines:
        held = f"{held} {line.strip()}" if held else line
        if line.strip().startswith("switch ") and "]" not in line:
            continue
        if held.strip().startswith("switch ") and "]" not in held:
            continue
        yield held
        held = ""


def split_arguments(text: str) -> list[str]:
    """A list's parts: at commas outside of brackets."""
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += letter in "([{<"
        depth -= letter in ")]}>"
        if letter == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []


def size_of(shape: str) -> int | None:
    """Bytes of a type; None of one whose layout is not told by its name."""
    array = re.match(r"^\[(\d+) x (.+)\]$", shape)
    if array:
        inner = size_of(array[2])
        return None if inner is None else int(array[1]) * inner
    return _BYTES.get(shape)


def structures(text: str) -> dict[str, int]:
    """Bytes of the named structures whose fields are of one size: there is no room between those."""
    found: dict[str, int] = {}
    for name, body in re.findall(r"^(%[\w.:$-]+) = type \{ (.+) \}$", text, re.MULTILINE):
        sizes = [size_of(part.strip()) or found.get(part.strip()) for part in split_arguments(body)]
        if sizes[0] is not None and len(set(sizes)) == 1:
            found[name] = sizes[0] * len(sizes)
    return found
