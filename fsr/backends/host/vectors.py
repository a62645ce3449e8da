"""Shadows of vector values: a vector of the lanes' shadows. (Structures of floats are passed by value as vectors.)"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fsr.backends.host.llvm_text import size_of, split_arguments

_VECTOR = re.compile(r"^<(\d+) x (i1|i8|i16|i32|i64|half|float|double)>")
_LANEWISE = frozenset(re.findall(r"\w+", "fadd fsub fmul fdiv frem add sub mul shl lshr ashr and or xor"))


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector type."""

    lanes: int
    element: str

    @property
    def text(self) -> str:
        """As LLVM writes it."""
        return f"<{self.lanes} x {self.element}>"

    @property
    def shadow(self) -> str:
        """The type of its shadow."""
        return f"<{self.lanes} x i32>"


def of(text: str) -> Vector | None:
    """The vector type that a text begins with."""
    found = _VECTOR.match(text)
    return Vector(int(found[1]), found[2]) if found else None


class Vectors:
    """Instructions on vectors, for the function that is being rewritten."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def shadow(self, value: str) -> str:
        """The shadow of a vector value."""
        return str(self.function.shadow(value)) if value in self.function.tainted else "zeroinitializer"

    def phi(self, vector: Vector, name: str, pairs: Sequence[tuple[str, str]]) -> str:
        """A shadow of a phi."""
        return f"  {name} = phi {vector.shadow} " + ", ".join(f"[ {self.shadow(v)}, {b} ]" for v, b in pairs)

    def value(self, op: str, rest: str, dest: str) -> Generator[str, None, bool]:
        """The shadow of an instruction's value; False where it is none that is followed."""
        parts = [p.strip() for p in split_arguments(rest)]
        name, vector = self.function.shadow(dest), of(parts[0])
        if op == "insertelement" and vector:
            scalar = self.function.shadow(parts[1].split(" ", 1)[1])
            yield f"  {name} = insertelement {vector.shadow} {self._of(parts[0])}, i32 {scalar}, {parts[2]}"
        elif op == "extractelement" and vector:
            yield f"  {name} = extractelement {vector.shadow} {self._of(parts[0])}, {parts[1]}"
        elif op == "shufflevector" and vector:
            both = f"{vector.shadow} {self._of(parts[0])}, {vector.shadow} {self._of(parts[1])}"
            yield f"  {name} = shufflevector {both}, {parts[2]}"
        elif op in ("freeze", "bitcast") and vector and (op == "freeze" or f" to <{vector.lanes} x" in rest):
            yield f"  {name} = add {vector.shadow} {self._of(parts[0].split(' to ')[0])}, zeroinitializer"
        elif op == "select" and len(parts) == 3 and parts[0].startswith("i1 ") and (vector := of(parts[1])):
            sides = f"{vector.shadow} {self._of(parts[1])}, {vector.shadow} {self._of(parts[2])}"
            yield "  " + self.function.losing(parts[0].split(" ", 1)[1])
            yield f"  {name} = select {parts[0]}, {sides}"
        elif op == "load" and vector:
            yield from self._load(vector, parts[1], dest, name)
        elif op in _LANEWISE and vector:
            yield from self._lanewise(op, vector, (parts[0].split("> ", 1)[1], parts[1]), dest)
        else:
            return False
        return True

    def _of(self, typed: str) -> str:
        return self.shadow(typed.split("> ", 1)[1])

    def _lane(self, vector: Vector, value: str, lane: int) -> Generator[str, None, tuple[str, str]]:
        """A lane of a value and of its shadow."""
        one, shadow = self.function.temporary(), self.function.temporary()
        yield f"  {one} = extractelement {vector.text} {value}, i64 {lane}"
        yield f"  {shadow} = extractelement {vector.shadow} {self.shadow(value)}, i64 {lane}"
        return one, shadow

    def _lanewise(self, op: str, vector: Vector, operands: tuple[str, str], dest: str) -> Iterator[str]:
        unit, held = self.function.unit, "zeroinitializer"
        for lane in range(vector.lanes):
            a, sa = yield from self._lane(vector, operands[0], lane)
            b, sb = yield from self._lane(vector, operands[1], lane)
            r = self.function.temporary()
            yield f"  {r} = extractelement {vector.text} {dest}, i64 {lane}"
            args = [("i32", str(unit.number(op))), ("i32", sa), ("i32", sb)]
            args += [(vector.element, x) for x in (a, b, r)]
            made = self.function.temporary()
            yield f"  {made} = " + unit.call(f"fsr_t_binary_{vector.element}", "i32", args)
            held = yield from self._put(vector, held, made, lane, dest)

    def _load(self, vector: Vector, pointer: str, dest: str, name: str) -> Iterator[str]:
        unit, held, width = self.function.unit, "zeroinitializer", size_of(vector.element)
        for lane in range(vector.lanes):
            at, value, made = (self.function.temporary() for _ in range(3))
            yield f"  {at} = getelementptr i8, {pointer}, i64 {lane * (width or 0)}"
            yield f"  {value} = extractelement {vector.text} {dest}, i64 {lane}"
            args = [("ptr", at), ("i32", self.function.shadow(pointer.removeprefix("ptr "))), (vector.element, value)]
            yield f"  {made} = " + unit.call(f"fsr_t_load_{vector.element}", "i32", args)
            held = yield from self._put(vector, held, made, lane, dest)

    def _put(self, vector: Vector, held: str, made: str, lane: int, dest: str) -> Generator[str, None, str]:
        name = self.function.shadow(dest) if lane == vector.lanes - 1 else self.function.temporary()
        yield f"  {name} = insertelement {vector.shadow} {held}, i32 {made}, i64 {lane}"
        return str(name)

    def store(self, vector: Vector, value: str, at: str) -> Iterator[str]:
        """A vector is stored, lane by lane."""
        unit, width = self.function.unit, size_of(vector.element) or 0
        for lane in range(vector.lanes):
            one, shadow = yield from self._lane(vector, value, lane)
            place = self.function.temporary()
            yield f"  {place} = getelementptr i8, ptr {at}, i64 {lane * width}"
            args = [("ptr", place), ("i32", self.function.shadow(at)), ("i32", shadow), (vector.element, one)]
            yield "  " + unit.call(f"fsr_t_store_{vector.element}", "void", args)
