"""LLVM's text of a unit with a shadow beside each value: the number of the expression node that it is the value of.

Beside each instruction stands a call of fsr/emulator/runtime/tracer.cpp that makes the result's node from the
operands'; 0 says that no data took part. Values, addresses and control flow stay as they are. Where the ways of a
branch on data meet, values are marked with the way that was taken.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from fsr.backends.host import vectors
from fsr.backends.host.aggregates import Aggregates
from fsr.backends.host.branches import LABEL, flow_of
from fsr.backends.host.control_flow import EXIT
from fsr.backends.host.llvm_text import (
    ARITHMETIC,
    CASTS,
    MADE,
    TYPES,
    VALUE,
    joined,
    plain_name,
    size_of,
    split_arguments,
    structures,
)
from fsr.backends.host.odd_widths import moved_apart
from fsr.backends.host.selects import GUESS, PUT, named, put_of, selected
from fsr.backends.host.tracer_calls import Unit

_NUMBER = {"i1": 0, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "half": 5, "float": 7, "double": 8}
_FLAGS = (
    "fast nnan ninf nsz arcp contract afn reassoc nneg nuw nsw exact disjoint samesign inbounds nusw volatile atomic"
)
_FLAG = f"(?:{_FLAGS.replace(' ', '|')})"
_CALL = re.compile(r"^\s*(?:(%[\w.$-]+) = )?(?:tail |musttail |notail )?call (.*?)@([\w.$]+)\((.*)\)[^()]*$")
_TWO = re.compile(r"^(\S+) ([^,]+), ([^,\s]+)")
_ARGUMENT = re.compile(r"^(ptr|i\d+|half|float|double)(?: [a-z]\w*(?:\([^()]*\))?| align \d+)* (\S+)$")
_IGNORED = ("llvm.lifetime", "llvm.assume", "llvm.dbg", "llvm.experimental", "llvm.stack", "llvm.prefetch")
LOST_VOTE, LOST_ELSEWHERE = 4, 8


@dataclass(frozen=True, slots=True)
class Instrumented:
    """The new text, the names of operations in the order of their numbers (from FIRST_NAMED on), and what is done in it
    that cannot be followed."""

    text: str
    operations: tuple[str, ...]
    blind: tuple[str, ...]


def instrument(text: str) -> Instrumented:
    """The text with shadows. Lines that are not understood stay as they are and are told in ``blind``."""
    unit, out, lines = Unit(structures=structures(text)), list[str](), text.split("\n")
    defined = set(re.findall(r"^define [^\n]*?@([\w.$]+)\(", text, re.MULTILINE))
    at = 0
    while at < len(lines):
        if not lines[at].startswith("define "):
            out.append(lines[at])
            at += 1
            continue
        end = lines.index("}", at)
        out += _Function(unit, lines[at : end + 1], defined).rewritten()
        at = end + 1
    out += [line for name, line in unit.used.items() if f"@{name}(" not in text]
    return Instrumented("\n".join(out) + "\n", tuple(unit.operations), tuple(unit.blind))


class _Function:
    """One function: which of its values data may take part in, and its new lines."""

    def __init__(self, unit: Unit, lines: Sequence[str], defined: set[str]) -> None:
        self.unit, self.head, self.defined = unit, lines[0], defined
        bare = (re.sub(r", ![\w.]+ !\d+| #\d+$|, !srcloc.*$", "", line) for line in lines[1:-1])
        self.body = moved_apart(list(joined(bare)))
        self.is_thread = "fsr_entry_of" in self.head and "thread" in self.head
        self._follow()
        while (body := selected(self.body, self.tainted, defined)) is not None:
            self.head, self.body = named(self.head, body)
            self._follow()
        self.aggregates = Aggregates(self)
        self.join_of = self._joins()

    # ------------------------------------------------------------ what data takes part in

    def _follow(self) -> None:
        self.rows = [MADE.match(line) for line in self.body]
        self.types: dict[str, str] = {}
        self.vectors = vectors.Vectors(self)
        self.tainted = self._tainted(set())
        while not (chosen := flow_of(self.body, self.tainted).chosen(self.rows, TYPES)) <= self.tainted:
            self.tainted = self._tainted(chosen)

    def _tainted(self, chosen: set[str]) -> set[str]:
        """``chosen``: what branches on data choose."""
        found = set(chosen)
        plain = self._plain_loads()
        users: list[tuple[str, set[str]]] = []
        for row in self.rows:
            if row is None:
                continue
            dest, op, rest = row.groups()
            pointer = op == "call" and re.search(r"(?:^|\s)ptr @", rest)
            if (op == "load" and dest not in plain) or op in ("sitofp", "uitofp", "atomicrmw", "cmpxchg", "call"):
                if not pointer:
                    found.add(dest)
            elif op != "load":
                users.append((dest, set(re.findall(VALUE, rest))))
        changed = True
        while changed:
            before = len(found)
            found |= {dest for dest, operands in users if operands & found}
            changed = len(found) != before
        return found

    def _plain_loads(self) -> set[str]:
        """Loads of what no data can be: indices, the launch's integers, its pointers."""
        pointers: set[str] = {"%0", "%v.0"} if self.is_thread else set()
        plain: set[str] = set()
        for row in self.rows:
            if row is None:
                continue
            dest, op, rest = row.groups()
            operands = re.findall(r"ptr (\S+?)(?:,|$)", rest)
            if op == "getelementptr" and operands and operands[0] in pointers:
                pointers.add(dest)
            elif op == "load":
                type_ = re.sub(rf"^(?:{_FLAG} )*", "", rest).split(",")[0]
                if type_ == "ptr":
                    plain.add(dest)
                    if operands and operands[0] in pointers and self.is_thread:
                        self.types[dest] = "argument"
                elif operands:
                    own = "@_ZN" in operands[0] and "fsr_" in operands[0]
                    if own or (self.types.get(operands[0]) == "argument" and type_.startswith("i")):
                        plain.add(dest)
        return plain

    def _joins(self) -> dict[str, int]:
        """Block to the number of its join, where a branch on data ends; fills ``self.branches`` (line to number)."""
        flow = flow_of(self.body, self.tainted)
        self.branches: dict[int, int] = {}
        joins: dict[str, int] = {}
        for number, block in flow.deciding:
            target = flow.meeting[block]
            if target != EXIT and target not in joins:
                self.unit.joins += 1
                joins[target] = self.unit.joins
            self.branches[number] = joins.get(target, 0)
        return joins

    # ------------------------------------------------------------ new lines

    def shadow(self, value: str) -> str:
        """The name of a value's shadow."""
        return f"%s.{value[1:].strip(chr(34))}" if value in self.tainted else "0"

    def temporary(self) -> str:
        """A name of our own."""
        self.unit.fresh += 1
        return f"%t.{self.unit.fresh}"

    def rewritten(self) -> Iterator[str]:
        """All lines of the function."""
        yield self.head
        enter = ["  " + self.unit.call("fsr_t_enter", "void", ())] if self.is_thread else []
        yield from () if LABEL.match(self.body[0]) else enter
        phis: list[tuple[str, str]] = []
        block: str | None = "entry"
        for number, (line, row) in enumerate(zip(self.body, self.rows, strict=True)):
            if label := LABEL.match(line):
                block, phis = label[1], []
                yield from (line, *(() if number else enter))
                continue
            is_phi = row is not None and row[2] == "phi"
            if block is not None and not is_phi and line.strip() and not line.strip().startswith(";"):
                yield from self._after_phis(block, phis)
                block = None
            yield from self._before(number, line)
            copies = [] if row is not None else self._copies(line)  # of what may lie where it goes to, still as it is
            yield from copies
            yield line
            if row is not None and is_phi:
                yield from self._phi(row, phis, block)
            elif row is not None and row[1] in self.tainted:
                yield from self._value(row, line)
            elif row is None and not copies:
                yield from self._effect(line)
        yield "}"

    def _phi(self, row: re.Match[str], phis: list[tuple[str, str]], block: str | None) -> Iterator[str]:
        dest, _, rest = row.groups()
        if dest not in self.tainted:
            return
        rest = re.sub(rf"^(?:{_FLAG} )*", "", rest)
        pairs = re.findall(r"\[ (.+?), (%[\w.$-]+) \]", rest)
        name = self.shadow(dest)
        if vector := vectors.of(rest):
            yield self.vectors.phi(vector, name, re.findall(r"\[ (.+?), (%[\w.$-]+) \]", rest.split("> ", 1)[1]))
            return
        if dest in self.aggregates.known:
            yield self.aggregates.phi(rest, name, re.findall(r"\[ (\S+), (%[\w.$-]+) \]", rest))
            return
        type_ = rest.split(" ", 1)[0]
        if block in self.join_of and type_ in TYPES:
            phis.append((dest, type_))
            name += ".p"
        yield f"  {name} = phi i32 " + ", ".join(f"[ {self.shadow(v)}, {b} ]" for v, b in pairs)

    def _after_phis(self, block: str, phis: Sequence[tuple[str, str]]) -> Iterator[str]:
        if block not in self.join_of:
            return
        yield "  " + self.unit.call("fsr_t_join", "void", [("i32", str(self.join_of[block]))])
        for dest, type_ in phis:
            args = [("i32", self.shadow(dest) + ".p"), (type_, dest)]
            yield f"  {self.shadow(dest)} = " + self.unit.call(f"fsr_t_rejoin_{type_}", "i32", args)

    def _before(self, number: int, line: str) -> Iterator[str]:
        """What stands before a branch on data, and before what is written under a condition."""
        if put := put_of(line):
            type_, where, turned, value, at = put
            self.unit.used[f"{PUT}{type_}"] = f"declare void @{PUT}{type_}(i1 zeroext, i1 zeroext, {type_}, ptr)"
            told = [("ptr", at), ("i32", self.shadow(where)), ("i1", where), ("i1", turned)]
            told += [("i32", self.shadow(value)), (type_, value)]
            yield "  " + self.unit.call(f"fsr_t_put_{type_}", "void", told)
        if number not in self.branches:
            return
        join = ("i32", str(self.branches[number]))
        if found := re.match(r"\s*br i1 (%[\w.$-]+),", line):
            told = [("i32", self.shadow(found[1])), ("i1", found[1]), join]
            yield "  " + self.unit.call("fsr_t_branch", "void", told)
        elif found := re.match(r"\s*switch (i\d+) (%[\w.$-]+),", line):
            yield "  " + self.losing(found[2], LOST_ELSEWHERE)

    def losing(self, value: str, why: int = LOST_ELSEWHERE) -> str:
        """A value that cannot be followed from here on."""
        return self.unit.call("fsr_t_lost", "void", [("i32", self.shadow(value)), ("i32", str(why))])

    def _value(self, row: re.Match[str], line: str) -> Iterator[str]:
        """The shadow of a value that data may take part in."""
        dest, op, rest = row.groups()
        rest = re.sub(rf"^(?:{_FLAG} )*", "", rest)
        made: str | None = None
        if "<" in rest and op != "call":
            done = yield from self.vectors.value(op, rest, dest)
            if done:
                return
        if made_of := list(self.aggregates.value(op, rest, dest)):
            yield from made_of
            return
        if op in ARITHMETIC or op in ("fneg", "freeze", "select", "fcmp", "icmp") or op in CASTS:
            made = yield from self.scalar(op, rest, dest)
        elif op == "load":
            made = self._load(rest, dest)
        elif op == "getelementptr":
            made = yield from self._address(rest)
        elif op == "call":
            done = yield from self.vectors.called(line, dest)
            if done:
                return
            made = yield from self.called(line, dest)
        if made is None:
            self._unseen(op, rest)
            yield from self.vectors.losing(rest)
            made = self.vectors.nothing(op, rest)
        yield f"  {self.shadow(dest)} = {made}"

    def scalar(self, op: str, rest: str, dest: str) -> Generator[str, None, str | None]:
        """The shadow of an instruction without memory; None for one that is not followed."""
        if op in ("fcmp", "icmp"):
            return self._comparison(op, rest, dest)
        return (yield from self._cast(op, rest, dest)) if op in CASTS else self._arithmetic(op, rest, dest)

    def _unseen(self, op: str, rest: str) -> None:
        if op != "call":
            what = "vectors" if "<" in rest.split(",")[0] else op
            self.unit.blind[f"{what} in the compiler's text"] = None

    def _arithmetic(self, op: str, rest: str, dest: str) -> str | None:
        if op == "select":
            found = re.match(r"^i1 (\S+), (\S+) ([^,]+), \S+ ([^,\s]+)", rest)
            if not found or found[2] not in TYPES:
                return None
            condition, type_, a, b = found.groups()
            args = [("i32", self.shadow(x)) for x in (condition, a, b)]
            args += [("i1", condition), (type_, a), (type_, b)]
            return self.unit.call(f"fsr_t_select_{type_}", "i32", args)
        if op in ("fneg", "freeze"):
            type_, a = rest.split(" ", 1)[0], rest.split(" ", 1)[1]
            if op == "freeze":
                return f"add i32 {self.shadow(a)}, 0"
            if type_ not in TYPES:
                return None
            args = [("i32", str(self.unit.number(op))), ("i32", self.shadow(a)), (type_, a), (type_, dest)]
            return self.unit.call(f"fsr_t_unary_{type_}", "i32", args)
        found = _TWO.match(rest)
        if not found or found[1] not in TYPES:
            return None
        return self._binary(op, found[1], (found[2], found[3]), dest)

    def _binary(self, op: str, type_: str, operands: tuple[str, str], dest: str) -> str:
        a, b = operands
        args = [("i32", str(self.unit.number(op))), ("i32", self.shadow(a)), ("i32", self.shadow(b))]
        return self.unit.call(f"fsr_t_binary_{type_}", "i32", [*args, (type_, a), (type_, b), (type_, dest)])

    def _comparison(self, op: str, rest: str, dest: str) -> str | None:
        predicate, rest = rest.split(" ", 1)
        found = _TWO.match(rest)
        if not found or found[1] not in TYPES:
            return None
        type_, a, b = found.groups()
        args = [("i32", str(self.unit.number(predicate))), ("i32", self.shadow(a)), ("i32", self.shadow(b))]
        return self.unit.call(f"fsr_t_compare_{type_}", "i32", [*args, (type_, a), (type_, b), ("i1", dest)])

    def _cast(self, op: str, rest: str, dest: str) -> Generator[str, None, str | None]:
        found = re.match(r"^(\S+) (.+) to (\S+)$", rest)
        if not found or found[1] not in (*TYPES, "ptr") or found[3] not in (*TYPES, "ptr"):
            return None
        source, value, target = found.groups()
        if op in ("ptrtoint", "inttoptr", "bitcast"):
            return f"add i32 {self.shadow(value)}, 0"
        number = ("i32", str(self.unit.number(op)))
        if op in ("sitofp", "uitofp"):
            wide = value
            if source != "i64":
                wide = self.temporary()
                yield f"  {wide} = {'sext' if op == 'sitofp' and source != 'i1' else 'zext'} {source} {value} to i64"
            args = [number, ("i32", self.shadow(value)), ("i64", wide), (target, dest)]
            return self.unit.call(f"fsr_t_integer_{target}", "i32", args)
        if op == "trunc" and target != "i1":
            wide = self.temporary()
            yield f"  {wide} = zext {target} {dest} to i64"
            shift = ("i32", str(self.unit.number("lshr")))
            args = [number, shift, ("i32", self.shadow(value)), ("i32", str(_NUMBER[target])), ("i64", wide)]
            return self.unit.call("fsr_t_truncate", "i32", args)
        return self.unit.call(f"fsr_t_convert_{target}", "i32", [number, ("i32", self.shadow(value)), (target, dest)])

    def _load(self, rest: str, dest: str) -> str | None:
        type_, pointer = (p.strip() for p in split_arguments(rest)[:2])
        at = pointer.removeprefix("ptr ").split(" syncscope")[0].removesuffix(" monotonic")
        if type_ not in TYPES:
            return None
        args = [("ptr", at), ("i32", self.shadow(at)), (type_, dest)]
        return self.unit.call(f"fsr_t_load_{type_}", "i32", args)

    def _address(self, rest: str) -> Generator[str, None, str | None]:
        parts = [p.strip() for p in split_arguments(rest)]
        inside = len(parts) == 4 and parts[2] == "i64 0"
        if len(parts) != 3 + inside or not parts[1].startswith("ptr "):
            return None
        shape, base = parts[0], parts[1].removeprefix("ptr ")
        kind, index = parts[-1].split(" ", 1)
        element = re.match(r"^\[\d+ x (.+)\]$", shape)
        if inside and not element:
            return None
        unit = element[1] if inside and element else shape
        scale = size_of(unit) or self.unit.structures.get(unit)
        if scale is None:
            return None
        wide = index
        if kind != "i64":
            wide = self.temporary()
            yield f"  {wide} = sext {kind} {index} to i64"
        start = self.temporary()
        yield f"  {start} = ptrtoint ptr {base} to i64"
        args = [("i32", str(self.unit.number("add"))), ("i32", str(self.unit.number("mul")))]
        args += [("i32", self.shadow(base)), ("i32", self.shadow(index)), ("i64", start), ("i64", wide)]
        return self.unit.call("fsr_t_address", "i32", [*args, ("i64", str(scale))])

    def called(self, line: str, dest: str) -> Generator[str, None, str | None]:
        found = _CALL.match(line)
        if not found:
            return None
        result = (re.findall(r"\b(?:void|ptr|i\d+|half|float|double)\b", found[2]) or [""])[-1]
        args = [_ARGUMENT.match(a.strip()) for a in split_arguments(found[4])]
        if found[3].startswith("fsr_bfloat16"):
            return self._bfloat16(found[3], args[0], dest)
        if found[3] in self.defined or result not in TYPES or None in args:
            self._outside(found[3])
            return None
        if found[3].startswith(GUESS):
            self.unit.used[found[3]] = f"declare {result} @{found[3]}(ptr)"
            return self._load(f"{result}, {found[4]}", dest)
        name = re.sub(r"^llvm\.|\.(?:f|i)\d+$|\.p0.*$", "", found[3])
        operands = [(a[1], a[2]) for a in args if a is not None]
        if name in ("abs", "ctlz", "cttz"):
            operands = operands[:1]
        if found[3].startswith("fsr_") or any(t != result for t, _ in operands) or not 1 <= len(operands) <= 3:
            self._outside(found[3])
            for type_, value in operands:
                if type_ != "ptr" and value in self.tainted:
                    yield "  " + self.losing(value, LOST_VOTE if found[3].startswith("fsr_") else LOST_ELSEWHERE)
            return "add i32 0, 0"
        form = ("unary", "binary", "ternary")[len(operands) - 1]
        number = ("i32", str(self.unit.number(plain_name(name, result))))
        shadows = [("i32", self.shadow(v)) for _, v in operands]
        return self.unit.call(f"fsr_t_{form}_{result}", "i32", [number, *shadows, *operands, (result, dest)])

    def _outside(self, name: str) -> None:
        if not name.startswith("fsr_"):
            self.unit.blind[f"a call of {name}"] = None

    def _bfloat16(self, name: str, argument: re.Match[str] | None, dest: str) -> str:
        widens = name.endswith("widen")
        shadow = self.shadow(argument[2]) if argument else "0"
        number = ("i32", str(self.unit.number("widen_bfloat16" if widens else "round_bfloat16")))
        result = ("float", dest) if widens else ("i16", dest)
        called = "fsr_t_widen_bfloat16" if widens else "fsr_t_round_bfloat16"
        return self.unit.call(called, "i32", [number, ("i32", shadow), result])

    def _copies(self, line: str) -> list[str]:
        """A copy of memory, told before it is made; none of any other line."""
        call = _CALL.match(line)
        args_ = [_ARGUMENT.match(a.strip()) for a in split_arguments(call[4])] if call else []
        if not call or not call[3].startswith(("llvm.memcpy", "llvm.memmove")) or not all(args_[:3]):
            return []
        to, from_, count = (a[2] for a in args_[:3] if a)
        return ["  " + self.unit.call("fsr_t_copy", "void", [("ptr", to), ("ptr", from_), ("i64", count)])]

    def _effect(self, line: str) -> Iterator[str]:
        """Stores, other copies and calls without a result."""
        words = line.strip()
        if words.startswith("store "):
            rest = re.sub(rf"^(?:{_FLAG} )*", "", words[6:])
            held, pointer = (p.strip() for p in split_arguments(rest)[:2])
            at = pointer.removeprefix("ptr ").split(" syncscope")[0].removesuffix(" monotonic")
            type_, _, value = held.partition(" ")
            if type_ in TYPES:
                args = [("ptr", at), ("i32", self.shadow(at)), ("i32", self.shadow(value))]
                yield "  " + self.unit.call(f"fsr_t_store_{type_}", "void", [*args, (type_, value)])
            elif vector := vectors.of(held):
                yield from self.vectors.store(vector, held.split("> ", 1)[1], at)
            return
        call = _CALL.match(line)
        if not call or call[3].startswith(_IGNORED):
            return
        args_ = [_ARGUMENT.match(a.strip()) for a in split_arguments(call[4])]
        if call[3].startswith("llvm.memset") and args_[0] and args_[2]:
            yield "  " + self.unit.call("fsr_t_fill", "void", [("ptr", args_[0][2]), ("i64", args_[2][2])])
        elif call[3] in self.defined:
            self._outside(call[3])


__all__ = ["LOST_ELSEWHERE", "LOST_VOTE", "TYPES", "Instrumented", "instrument"]
