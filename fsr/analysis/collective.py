"""Which device functions combine one value of every thread of a block, shown by running them on symbols.

The function is executed for all threads of the block in lockstep, with integers as they are and the argument as a
symbol a thread. A value is the operator that made it and the set of threads whose symbols it holds. For a kernel
without races lockstep is one of the possible orders, so what comes out holds for all. A function that ends with
every thread holding the symbols of all threads, each once (or any number of times for max and min), combines
the block's values in some order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fsr.analysis.calls import is_load
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import integer, names_mentioned

STEPS = 4000  # statements, counting each once for all threads; beyond it the function is given up
_OPERATORS = {"+=": "+", "*=": "*", "|=": "|", "&=": "&", "^=": "^"}
_CALLS = {"fmaxf": "max", "fmax": "max", "max": "max", "fminf": "min", "fmin": "min", "min": "min"}
_IDENTITY = {"+": 0.0, "*": 1.0}
_EXTREMES = {"max": max, "min": min}
_IDEMPOTENT = frozenset([*_EXTREMES, "|", "&"])


class _Unknown(Exception):  # noqa: N818  # not an error: nothing is claimed
    """Something that has no meaning here."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """What a value was made of: the operator (None: one symbol as it came), the threads, and the number that an
    extreme was taken with besides (None: none that could win)."""

    operator: str | None
    threads: frozenset[int]
    limit: int | float | None = None


WORTHLESS = Symbols("?", frozenset())
Value = int | float | Symbols
Lanes = dict[int, Value]  # by thread


@dataclass(frozen=True, slots=True)
class Combined:
    """What a function makes of a block's values: the operator (+ * max min & |), and whether every thread gets the
    result or only thread 0 is known to. ``limit``: a number that lanes without a value put in its place, so that a
    maximum is never less and a minimum never more than it (None: one that is neutral, or none)."""

    operator: str
    everywhere: bool
    limit: int | float | None = None


def combined_value(
    function: KernelForm, threads: int, functions: Mapping[str, KernelForm], constants: Mapping[str, int]
) -> Combined | None:
    """How a __device__ function of one value combines the values of all threads of a block of ``threads`` by 1 by 1;
    None when it cannot be shown that it does. ``constants``: values of template parameters and macros."""
    if len(function.params) != 1 or not 32 <= threads <= 1024:
        return None
    called, words, waiting = dict[str, KernelForm](), set[str](), [function]
    while waiting:
        own = names_mentioned(waiting.pop().body)
        words |= own
        found = {name: functions[name] for name in own if name in functions and name not in called}
        called |= found
        waiting += found.values()
    needed = words | {name for f in (function, *called.values()) for _, name in f.template_parameters}
    given = tuple(sorted((name, value) for name, value in constants.items() if name in needed))
    return _shown(function, threads, tuple(sorted(called.items())), given)


@lru_cache(maxsize=512)
def _shown(
    function: KernelForm, threads: int, called: tuple[tuple[str, KernelForm], ...], given: tuple[tuple[str, int], ...]
) -> Combined | None:
    """The same, of the functions and the constants that the function needs. Kept: every candidate that was made by
    blocks a row has these functions, and a thousand threads take tenths of a second."""
    functions, constants = dict(called), dict(given)
    machine = _Machine(threads, functions, constants)
    everyone = frozenset(range(threads))
    try:
        result = machine.call(function, [{t: Symbols(None, frozenset([t])) for t in everyone}], everyone, constants)
    except (_Unknown, RecursionError, KeyError, ZeroDivisionError, TypeError, OverflowError):
        return None
    value = result.get(0)
    if not isinstance(value, Symbols) or value.threads != everyone or value.operator is None:
        return None
    return Combined(value.operator, {result.get(t) for t in everyone} == {value}, value.limit)


@dataclass(slots=True)
class _Frame:
    names: dict[str, Lanes]
    constants: Mapping[str, int]
    types: frozenset[str]
    result: Lanes = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Machine:
    threads: int
    functions: Mapping[str, KernelForm]
    constants: Mapping[str, int]
    memory: dict[tuple[str, int], Value] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0

    def call(
        self, function: KernelForm, args: list[Lanes], active: frozenset[int], constants: Mapping[str, int]
    ) -> Lanes:
        self.depth += 1
        if self.depth > 8 or len(args) != len(function.params):
            raise _Unknown
        given = {p.name: dict(a) for p, a in zip(function.params, args, strict=True)}
        types = (name for kind, name in function.template_parameters if kind in ("typename", "class"))
        frame = _Frame(given, constants, frozenset(["float", "double", *types]))
        self.block(function.body, active, frame)
        self.depth -= 1
        return frame.result

    # ------------------------------------------------------------ statements

    def block(self, stmts: tuple[Stmt, ...], active: frozenset[int], frame: _Frame) -> frozenset[int]:
        """Run the statements for the active threads; gives those that have not returned."""
        for s in stmts:
            if not active:
                break
            active = self.statement(s, active, frame)
        return active

    def statement(self, s: Stmt, active: frozenset[int], frame: _Frame) -> frozenset[int]:
        """Run one statement for the active threads; gives those that have not returned."""
        self.count()
        match s:
            case Comment():
                return active
            case Declare():
                self.declare(s, active, frame)
            case Assign(target, op, value):
                self.assign(target, op, value, active, frame)
            case ExprStmt(Call(Name("__syncthreads"), ())):
                if len(active) != self.threads:
                    raise _Unknown
            case ExprStmt(Call(Name("__syncwarp"))):
                pass
            case If(test, then, orelse):
                yes = self.true(test, active, frame)
                return self.block(then, yes, frame) | self.block(orelse, active - yes, frame)
            case For():
                return self.loop(s, active, frame)
            case While(test, body):
                return self.repeat(test, body, active, frame)
            case Scope(body):
                return self.block(body, active, frame)
            case Return(value) if value is not None:
                frame.result |= self.value(value, active, frame)
                return frozenset()
            case _:
                raise _Unknown
        return active

    def count(self) -> None:
        """One more statement or turn of a loop; gives up when there were too many."""
        self.steps += 1
        if self.steps > STEPS:
            raise _Unknown

    def declare(self, s: Declare, active: frozenset[int], frame: _Frame) -> None:
        if "__shared__" in s.qualifiers and s.init is None and len(s.dims) <= 1:
            frame.shared.add(s.name)
        elif s.dims or {"static", "extern", "volatile"} & set(s.qualifiers) or s.type.endswith(("*", "&")):
            raise _Unknown
        else:
            frame.names[s.name] = {} if s.init is None else self.value(s.init, active, frame)

    def assign(self, target: Expr, op: str, value: Expr, active: frozenset[int], frame: _Frame) -> None:
        """Give a variable, or a place in shared memory, its new values."""
        new = self.value(value, active, frame)
        if op != "=":
            old = self.value(target, active, frame)
            new = {t: self.combine(op[:-1], old[t], new[t]) for t in active}
        match target:
            case Name(text) if text in frame.names:
                frame.names[text] |= new
            case Index(Name(text), index) if text in frame.shared:
                places = self.value(index, active, frame)
                if len(set(places.values())) != len(places) and len(set(new.values())) != 1:
                    raise _Unknown
                for t in sorted(active):
                    self.memory[text, _whole(places[t])] = new[t]
            case Name(text) if text in frame.shared:
                if len(active) != 1:
                    raise _Unknown
                self.memory[text, 0] = next(iter(new.values()))
            case _:
                raise _Unknown

    def loop(self, s: For, active: frozenset[int], frame: _Frame) -> frozenset[int]:
        frame.names[s.var] = self.value(s.start, active, frame)
        test, step = Binary(s.relation, Name(s.var), s.bound), Assign(Name(s.var), "+=", s.step)
        return self.repeat(test, (*s.body, step), active, frame)

    def repeat(self, test: Expr, body: tuple[Stmt, ...], active: frozenset[int], frame: _Frame) -> frozenset[int]:
        running, left = active, active
        while True:
            self.count()
            running = self.true(test, running, frame)
            if not running:
                return left
            stayed = self.block(body, running, frame)
            left -= running - stayed
            running = stayed

    # ------------------------------------------------------------ expressions

    def true(self, test: Expr, active: frozenset[int], frame: _Frame) -> frozenset[int]:
        found = self.value(test, active, frame) if active else {}
        return frozenset(t for t in active if _number(found[t]))

    def value(self, e: Expr, active: frozenset[int], frame: _Frame) -> Lanes:
        """The value of an expression in every active thread."""
        match e:
            case Name(text):
                return self.name(text, active, frame)
            case Literal(text):
                number = _literal(text)
                return dict.fromkeys(active, number)
            case Member(Name("threadIdx" | "blockDim" as text), field_name):
                return {t: self.geometry(text, field_name, t) for t in active}
            case Index(Name(text), index) if text in frame.shared:
                places = self.value(index, active, frame)
                return {t: self.memory[text, _whole(places[t])] for t in active}
            case Cast(_, operand, "c" | "static_cast"):
                return self.value(operand, active, frame)
            case Unary("-" | "+" | "!" | "~" as op, operand):
                inner = self.value(operand, active, frame)
                return {t: _unary(op, inner[t]) for t in active}
            case Ternary(test, yes, no):
                taken = self.true(test, active, frame)
                return self.value(yes, taken, frame) | self.value(no, active - taken, frame)
            case Binary(op, left, right):
                return self.binary(op, left, right, active, frame)
            case Call(Name(text), (operand,)) if text in frame.types:
                return self.value(operand, active, frame)
            case Call(Name(text), args, templates):
                return self.called(e, text, args, templates, active, frame)
        raise _Unknown

    def name(self, text: str, active: frozenset[int], frame: _Frame) -> Lanes:
        if text in frame.names:
            return {t: frame.names[text][t] for t in active}
        if text in frame.shared:
            return dict.fromkeys(active, self.memory[text, 0])
        constants = {"INFINITY": math.inf, "FLT_MAX": math.inf, "warpSize": 32, **self.constants, **frame.constants}
        return dict.fromkeys(active, constants[text])

    def geometry(self, text: str, axis: str, thread: int) -> int:
        if axis != "x":
            return 0 if text == "threadIdx" else 1
        return thread if text == "threadIdx" else self.threads

    def binary(self, op: str, left: Expr, right: Expr, active: frozenset[int], frame: _Frame) -> Lanes:
        first = self.value(left, active, frame)
        if op in ("&&", "||"):
            rest = frozenset(t for t in active if bool(_number(first[t])) == (op == "&&"))
            second = self.value(right, rest, frame) if rest else {}
            return {t: int(bool(_number(second[t]))) if t in rest else int(op == "||") for t in active}
        second = self.value(right, active, frame)
        return {t: self.combine(op, first[t], second[t]) for t in active}

    def called(
        self, e: Call, text: str, args: tuple[Expr, ...], templates: tuple[str, ...], active: frozenset[int],
        frame: _Frame,
    ) -> Lanes:  # fmt: skip
        """The value of a call: an extreme, a shuffle, or a device function of the file."""
        if text in _CALLS and len(args) == 2:
            a, b = (self.value(x, active, frame) for x in args)
            return {t: self.combine(_CALLS[text], a[t], b[t]) for t in active}
        if text in _SHUFFLES and len(args) in (3, 4):
            return self.shuffle(text, args, active, frame)
        if text in self.functions and not is_load(e):
            function = self.functions[text]
            values = [self.value(a, active, frame) for a in args]
            return self.call(function, values, active, self.template(function, templates, frame))
        raise _Unknown

    def template(self, function: KernelForm, given: tuple[str, ...], frame: _Frame) -> dict[str, int]:
        found: dict[str, int] = {}
        for (kind, name), text in zip(function.template_parameters, given, strict=False):
            value = integer(Literal(text)) if text[:1].isdigit() else {**self.constants, **frame.constants}.get(text)
            if kind not in ("typename", "class"):
                if value is None:
                    raise _Unknown
                found[name] = value
        return found

    def shuffle(self, text: str, args: tuple[Expr, ...], active: frozenset[int], frame: _Frame) -> Lanes:
        """What each thread reads from another lane; a lane that is not active gives the function up."""
        source = self.value(args[1], active, frame)
        offsets = self.value(args[2], active, frame)
        widths = self.value(args[3], active, frame) if len(args) == 4 else dict.fromkeys(active, 32)
        found: Lanes = {}
        for t in active:
            width = _whole(widths[t])
            base, lane = t - t % width, t % width
            there = _SHUFFLES[text](lane, _whole(offsets[t]), width)
            other = base + there if 0 <= there < width else t
            if other not in active:
                raise _Unknown
            found[t] = source[other]
        return found

    def combine(self, op: str, a: Value, b: Value) -> Value:
        """An operator on two values; on symbols, what they hold together, or WORTHLESS."""
        if not isinstance(a, Symbols) and not isinstance(b, Symbols):
            return _arithmetic(op, a, b)
        if not isinstance(a, Symbols) or not isinstance(b, Symbols):
            number, symbols = (b, a) if isinstance(a, Symbols) else (a, b)
            return self.with_number(op, symbols, number)
        mixed = {a.operator, b.operator} - {None, op}
        twice = a.threads & b.threads and op not in _IDEMPOTENT
        if mixed or twice or op not in ("+", "*", "&", "|", "max", "min"):
            return WORTHLESS  # as the lanes beyond a shuffle's end hold; wrong only if it gets into the result
        return Symbols(op, a.threads | b.threads, _tighter(op, a.limit, b.limit))

    def with_number(self, op: str, symbols: Value, number: Value) -> Value:
        """An operator on symbols and a number that all threads know, in either order."""
        if not isinstance(symbols, Symbols) or symbols.operator not in (None, op) or isinstance(number, Symbols):
            return WORTHLESS
        if number == {**_IDENTITY, "max": -math.inf, "min": math.inf}.get(op):
            return symbols
        return Symbols(op, symbols.threads, _tighter(op, symbols.limit, number)) if op in _EXTREMES else WORTHLESS


_SHUFFLES: dict[str, Callable[[int, int, int], int]] = {
    "__shfl_xor_sync": lambda lane, by, width: lane ^ by,
    "__shfl_down_sync": lambda lane, by, width: lane + by,
    "__shfl_up_sync": lambda lane, by, width: lane - by,
    "__shfl_sync": lambda lane, by, width: by % width,
}


def _tighter(op: str, a: int | float | None, b: int | float | None) -> int | float | None:
    """Of two numbers that extremes were taken with, the one that counts."""
    return b if a is None else a if b is None or op not in _EXTREMES else _EXTREMES[op](a, b)


def _number(value: Value) -> int | float:
    if isinstance(value, Symbols):
        raise _Unknown
    return value


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise _Unknown
    return value


def _literal(text: str) -> int | float:
    whole = integer(Literal(text))
    if whole is not None:
        return whole
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return float(text.rstrip("fFlL"))
    except ValueError:
        raise _Unknown from None


def _unary(op: str, value: Value) -> Value:
    number = _number(value)
    match op:
        case "-":
            return -number
        case "!":
            return int(not number)
        case "~":
            return ~_whole(number)
    return number


def _arithmetic(op: str, a: int | float, b: int | float) -> int | float:
    both = isinstance(a, int) and isinstance(b, int)
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a // b if isinstance(a, int) and isinstance(b, int) and a >= 0 and b > 0 else a / b
        case "max":
            return max(a, b)
        case "min":
            return min(a, b)
        case "<" | ">" | "<=" | ">=" | "==" | "!=":
            return int({"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b, "!=": a != b}[op])
    if not both:
        raise _Unknown
    x, y = int(a), int(b)
    if x < 0 or y < 0:
        raise _Unknown
    return {"%": lambda: x % y, "<<": lambda: x << y, ">>": lambda: x >> y, "&": lambda: x & y, "|": lambda: x | y,
            "^": lambda: x ^ y}[op]()  # fmt: skip
