"""Shadows of vector values: a vector of the lanes' shadows. (Structures of floats are passed by value as vectors.)"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fsr.backends.host.llvm_text import size_of, split_arguments

ELEMENT = "(i1|i8|i16|i32|i64|half|float|double)"
_VECTOR = re.compile(rf"^<(\d+) x {ELEMENT}>")
_COMPARISONS = ("fcmp", "icmp")
_CALL = re.compile(r"^[^=]*= (?:tail )?call (?:[a-z]+ )*(<\d+ x \w+>) @(llvm\.[\w.]+?)\.v\d+\w+\((.*)\)[^()]*$")
_ARGUMENT = re.compile(r"^(<\d+ x \w+>|i\d+|half|float|double)(?: [a-z]\w*(?:\([^()]*\))?| align \d+)* (\S+)$")
_SHORT = {"half": "f16", "float": "f32", "double": "f64", **{f"i{n}": f"i{n}" for n in (1, 8, 16, 32, 64)}}
_CASTS = frozenset(re.findall(r"\w+", "trunc zext sext fpext fptrunc fptosi fptoui sitofp uitofp"))
_LANEWISE = _CASTS | frozenset(
    re.findall(r"\w+", "fadd fsub fmul fdiv frem add sub mul shl lshr ashr and or xor fcmp icmp fneg select")
)


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
        elif op == "load" and vector:
            yield from self._load(vector, parts[1], dest, name)
        elif op in _LANEWISE and " to i" not in rest:
            yield from self._lanewise(op, rest, dest)
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

    def _lanewise(self, op: str, rest: str, dest: str) -> Iterator[str]:
        """As the scalar instruction, lane by lane."""
        predicate, rest = rest.split(" ", 1) if op in _COMPARISONS else ("", rest)
        rest, _, to = rest.partition(" to ")
        parts, operands, first = [p.strip() for p in split_arguments(rest)], list[tuple[Vector, str]](), list[str]()
        if op == "select" and not of(parts[0]):  # one condition for all lanes
            first.append(parts.pop(0))
        for part in parts:
            vector = of(part.strip()) or operands[-1][0]
            operands.append((vector, part.strip().removeprefix(vector.text).strip()))
        last = operands[-1][0]
        result = of(to) or (Vector(last.lanes, "i1") if predicate else last)
        held, function = "zeroinitializer", self.function
        for lane in range(result.lanes):
            words = first.copy()
            for vector, value in operands:
                one = yield from self._single(vector, value, lane)
                words.append(one if words and op != "select" else f"{vector.element} {one}")
            text = " ".join(w for w in (predicate, ", ".join(words), f"to {result.element}" if to else "") if w)
            r = function.temporary()
            yield f"  {r} = extractelement {result.text} {dest}, i64 {lane}"
            shadow = yield from function.scalar(op, text, r)
            made = function.temporary()
            yield f"  {made} = {shadow}"
            held = yield from self._put(result, held, made, lane, dest)

    def called(self, line: str, dest: str) -> Generator[str, None, bool]:
        """The shadow of what a function of LLVM's own makes of vectors, lane by lane; False for other calls."""
        found = _CALL.match(line)
        vector = of(found[1]) if found else None
        args = [_ARGUMENT.match(a.strip()) for a in split_arguments(found[3])] if found else []
        operands = [(of(a[1]) or Vector(0, a[1]), a[2]) for a in args if a]
        if not found or vector is None or len(operands) != len(args) or not operands:
            return False
        if any(v.lanes not in (0, vector.lanes) for v, _ in operands):
            return False
        held, function = "zeroinitializer", self.function
        for lane in range(vector.lanes):
            words = []
            for kind, value in operands:
                one = (yield from self._single(kind, value, lane)) if kind.lanes else value
                words.append(f"{kind.element} {one}")
            r, made = function.temporary(), function.temporary()
            yield f"  {r} = extractelement {vector.text} {dest}, i64 {lane}"
            text = f"  {r} = call {vector.element} @{found[2]}.{_SHORT[vector.element]}({', '.join(words)})"
            yield f"  {made} = {(yield from function.called(text, r)) or 'add i32 0, 0'}"
            held = yield from self._put(vector, held, made, lane, dest)
        return True

    def nothing(self, op: str, rest: str) -> str:
        """A shadow of the result's type that says that no data took part."""
        if " to " in rest:
            told = rest.rpartition(" to ")[2]
        elif op == "call":
            told = rest[: rest.find(" @")].rpartition("<")[2]
            told = f"<{told}"
        else:
            told = "" if op == "extractelement" else rest[max(rest.find("<"), 0) :]
        vector = of(told)
        return "add i32 0, 0" if vector is None else f"add {vector.shadow} zeroinitializer, zeroinitializer"

    def _single(self, vector: Vector, value: str, lane: int) -> Generator[str, None, str]:
        """A lane of a value as a value of its own, with its shadow."""
        one = self.function.temporary()
        yield f"  {one} = extractelement {vector.text} {value}, i64 {lane}"
        if value in self.function.tainted:
            self.function.tainted.add(one)
            yield f"  {self.function.shadow(one)} = extractelement {vector.shadow} {self.shadow(value)}, i64 {lane}"
        return str(one)

    def losing(self, rest: str) -> Iterator[str]:
        """Data in the vectors of an instruction that is not followed is lost."""
        kind: Vector | None = None
        for type_, value in re.findall(r"(<\d+ x \w+>|\b(?:i\d+|half|float|double|ptr)\b)?[ ,(]*(%[\w.$-]+)", rest):
            kind = of(type_) if type_ else kind
            if value not in self.function.tainted:
                continue
            if kind is None:
                yield "  " + self.function.losing(value)
                continue
            for lane in range(kind.lanes):
                yield "  " + self.function.losing((yield from self._single(kind, value, lane)))

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
