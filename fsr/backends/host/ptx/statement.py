"""Asm statements of a source: where they stand, their template and their operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\b\s*)*\(")
_STRING = re.compile(r'"[^"]*"')
_OPERAND = re.compile(r'"(?P<constraint>[^"]*)" ?\( ?(?P<text>.*?) ?\)', re.DOTALL)
_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": " ", '"': '"', "\\": "\\", "\n": ""}


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its constraint as written (``=r``) and the C++ text between its brackets, on one line."""

    constraint: str
    text: str

    @property
    def kind(self) -> str:
        """The constraint's letter."""
        return self.constraint.lstrip("=+&")

    @property
    def written(self) -> bool:
        """Whether the statement writes it."""
        return self.constraint.startswith(("=", "+"))

    @property
    def read(self) -> bool:
        """Whether it has a value before the statement."""
        return not self.constraint.startswith("=")


@dataclass(frozen=True, slots=True)
class Statement:
    """An asm statement at ``source[start:stop]``: the template without C's escapes, and outputs before inputs.

    ``lines``: what keeps its line breaks, behind backslashes inside of a macro. ``unread``: why it is not read."""

    start: int
    stop: int
    lines: str
    template: str = ""
    operands: tuple[Operand, ...] = ()
    unread: str = ""


def statements(source: str, blanked: str) -> Iterator[Statement]:
    """All asm statements of a text, in order; ``blanked``: the same with spaces in place of comments and of what is
    between quotes. Assembler names of declarations (``int f(int) asm("g");``) are none."""
    for found in _ASM.finditer(blanked):
        stop = _close(blanked, found.end())
        if stop is None:
            continue
        place = source[found.start() : stop]
        lines = "\\\n" * place.count("\\\n") or "\n" * place.count("\n")
        yield _read(source, blanked, (found.end(), stop - 1), (found.start(), stop, lines))


def _read(source: str, blanked: str, inside: tuple[int, int], place: tuple[int, int, str]) -> Statement:
    sections = [*_split(blanked, *inside, ":"), inside[1:] * 2, inside[1:] * 2]
    template = blanked[slice(*sections[0])]
    if re.search(r"^\s*#", blanked[slice(*inside)], re.MULTILINE):
        return Statement(*place, unread="it holds preprocessor directives")
    if template.replace('"', "").replace("\\\n", "").strip():
        return Statement(*place, unread="its text is not a literal")
    start = sections[0][0]
    text = "".join(source[start + a + 1 : start + b - 1] for a, b in (m.span() for m in _STRING.finditer(template)))
    operands = []
    for section in sections[1:3]:
        for a, b in _split(blanked, *section, ","):
            if not blanked[a:b].replace("\\\n", "").strip():
                continue
            operand = _operand(source[a:b])
            if operand is None:
                return Statement(*place, unread="an operand of it cannot be read")
            operands.append(operand)
    return Statement(*place, template=unescaped(text), operands=tuple(operands))


def _operand(text: str) -> Operand | None:
    plain = _COMMENT.sub(lambda found: found[1] or " ", text.replace("\\\n", " "))
    found = _OPERAND.fullmatch(" ".join(plain.split()))
    return None if found is None else Operand(found["constraint"], found["text"])


def unescaped(text: str) -> str:
    """A literal's text with its escapes resolved."""
    return re.sub(r"\\(.|\n)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def _close(blanked: str, at: int) -> int | None:
    """Behind the bracket that closes the one before ``at``; None when it never closes."""
    depth = 1
    for place in re.finditer(r"[()]", blanked[at:]):
        depth += 1 if place[0] == "(" else -1
        if depth == 0:
            return at + place.end()
    return None


def _split(blanked: str, start: int, stop: int, mark: str) -> list[tuple[int, int]]:
    """The places of what stands between marks outside of brackets."""
    places, depth = [start], 0
    for at in range(start, stop):
        depth += (blanked[at] in "([{") - (blanked[at] in ")]}")
        if depth == 0 and blanked[at] == mark:
            places.append(at + 1)
    return [(a, b - 1) for a, b in zip(places, [*places[1:], stop + 1], strict=True)]
