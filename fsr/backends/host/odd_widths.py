"""Elements that the compiler moves in a register of an odd width, moved one by one again.

Three bytes of a ``uchar3`` are put together as an i24 and stored at once, three shorts as an i48: widths that no value
of a source has. Loads and stores of such a width become ones of the elements that it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from fsr.backends.host.llvm_text import MADE, VALUE

_USUAL = (1, 8, 16, 32, 64)
_WIDEST = 256
_STORE = re.compile(r"^\s*store i(\d+) (\S+), ptr (\S+), align \d+")
_LOAD = re.compile(r"^i(\d+), ptr (\S+), align \d+")
_OR = re.compile(r"^(?:disjoint )?i(\d+) (\S+), (\S+)$")
_SHIFT = re.compile(r"^(?:nuw |nsw |exact )*i(\d+) (\S+), (\d+)$")
_CAST = re.compile(r"^(?:nneg |nuw |nsw )*i(\d+) (\S+) to i(\d+)$")

# By the bit at which it begins: bits, and the value; where there is none it is nought.
_Parts = dict[int, tuple[int, str]]


def moved_apart(lines: Sequence[str]) -> list[str]:
    """A function's lines without loads and stores of odd widths, as far as what is in them can be told."""
    if not any(_odd(int(n)) for line in lines for n in re.findall(r"\bi(\d+)\b", line)):
        return list(lines)
    return list(_Function(lines).rewritten())


def _odd(bits: int) -> bool:
    return bits % 8 == 0 and bits not in _USUAL and bits <= _WIDEST


class _Function:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.made = {row[1]: (row[2], row[3]) for row in map(MADE.match, lines) if row is not None}
        self.loaded = dict[str, _Parts]()  # wide values as the elements that were read in their place
        self.same = dict[str, str]()  # values that are such an element
        self.count = 0
        self.widths = self._widths()

    def rewritten(self) -> Iterator[str]:
        """The lines anew."""
        for line in self.lines:
            text = re.sub(VALUE, lambda found: self.same.get(found[0], found[0]), line) if self.same else line
            stored, row = _STORE.match(text), MADE.match(text)
            if stored is not None and _odd(int(stored[1])):
                yield from self._stored(text, int(stored[1]), stored[2], stored[3])
            elif row is not None and row[2] == "load" and (read := _LOAD.match(row[3])) and row[1] in self.widths:
                yield from self._read(row[1], int(read[1]), read[2])
            elif row is not None and row[2] == "trunc" and (element := self._element(row[1])) is not None:
                self.same[row[1]] = element
            else:
                yield text

    def _stored(self, line: str, bits: int, value: str, pointer: str) -> Iterator[str]:
        parts = self._parts(value, bits)
        if parts is None or any(at % 8 for at in parts):
            yield line
            return
        for at in range(0, bits, 8):
            if not any(begin <= at < begin + width for begin, (width, _) in parts.items()):
                parts[at] = 8, "0"
        for at, (width, part) in sorted(parts.items()):
            place, more = self._at(pointer, at)
            yield from more
            yield f"  store i{width} {part}, ptr {place}, align 1"

    def _read(self, name: str, bits: int, pointer: str) -> Iterator[str]:
        self.loaded[name] = {}
        width = self.widths[name]
        for at in range(0, bits, width):
            place, more = self._at(pointer, at)
            yield from more
            part = self._new()
            self.loaded[name][at] = width, part
            yield f"  {part} = load i{width}, ptr {place}, align 1"

    def _at(self, pointer: str, bit: int) -> tuple[str, list[str]]:
        if not bit:
            return pointer, []
        place = self._new()
        return place, [f"  {place} = getelementptr i8, ptr {pointer}, i64 {bit // 8}"]

    def _new(self) -> str:
        self.count += 1
        return f"%fsr_apart_{self.count}"

    # ------------------------------------------------------------ what a wide value is made of

    def _parts(self, value: str, bits: int) -> _Parts | None:
        """None where that cannot be told."""
        if re.fullmatch(r"-?\d+", value):
            number = int(value) % (1 << bits)
            return {at: (8, str(number >> at & 255)) for at in range(0, bits, 8) if number >> at & 255}
        if value in self.loaded:
            return dict(self.loaded[value])
        op, rest = self.made.get(value, ("", ""))
        if op == "or" and (found := _OR.match(rest)):
            left, right = self._parts(found[2], bits), self._parts(found[3], bits)
            return None if left is None or right is None else _beside(left, right)
        if op == "shl" and (found := _SHIFT.match(rest)):
            below = self._parts(found[2], bits)
            moved = {at + int(found[3]): part for at, part in below.items()} if below is not None else None
            return moved if moved is not None and all(at + w <= bits for at, (w, _) in moved.items()) else None
        if op == "lshr" and (found := _SHIFT.match(rest)):
            below, by = self._parts(found[2], bits), int(found[3])
            if below is None or any(at < by < at + w for at, (w, _) in below.items()):
                return None
            return {at - by: part for at, part in below.items() if at >= by}
        if op == "zext" and (found := _CAST.match(rest)) and int(found[1]) in _USUAL[1:]:
            return {0: (int(found[1]), self.same.get(found[2], found[2]))}
        return None

    def _element(self, name: str) -> str | None:
        """The element that a wide value was narrowed to; None where it is not one alone."""
        found = _CAST.match(self.made[name][1])
        if found is None or not _odd(int(found[1])):
            return None
        parts, bits = self._parts(found[2], int(found[1])), int(found[3])
        begun = [(at, width) for at, (width, _) in (parts or {}).items() if at < bits]
        return parts[0][1] if parts is not None and begun == [(0, bits)] else None

    def _widths(self) -> dict[str, int]:
        """The bits of the elements of loads of odd widths: of what their users take from them, or bytes."""
        found = dict[str, int]()
        for name, (op, rest) in self.made.items():
            read = _LOAD.match(rest) if op == "load" else None
            if read is not None and _odd(bits := int(read[1])):
                taken = self._taken(name)
                found[name] = taken if taken and bits % taken == 0 else 8
        return found

    def _taken(self, name: str) -> int:
        """The bits of what a wide value is narrowed to, itself or shifted; 0 where that is nothing or many things."""
        shifts = ((d, _SHIFT.match(rest)) for d, (op, rest) in self.made.items() if op == "lshr")
        shifted = {d for d, shift in shifts if shift is not None and shift[2] == name}
        casts = (_CAST.match(rest) for op, rest in self.made.values() if op == "trunc")
        widths = {int(c[3]) for c in casts if c is not None and c[2] in shifted | {name}}
        return widths.pop() if len(widths) == 1 and min(widths) in _USUAL[1:] else 0


def _beside(left: _Parts, right: _Parts) -> _Parts | None:
    """Both; None where they share bits."""
    merged = sorted([*left.items(), *right.items()])
    apart = all(at + part[0] <= then for (at, part), (then, _) in pairwise(merged))
    return dict(merged) if apart else None
