"""Whether a block's fold commutes with folding several blocks' points first: gone through value by value.

Whatever form a fold has (trees, shuffles, functions, one thread that adds up), it is enough that each of its steps
does: nothing is asked about which thread folds what. What decides where something happens must be the same for all
blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fsr.analysis.calls import ATOMICS, CONSTANTS
from fsr.analysis.operators import BY_ATOMIC
from fsr.analysis.types import number_type
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    Return,
    Scope,
    Stmt,
    While,
    conjuncts,
)  # fmt: skip
from fsr.source.walk import Block, is_zero
from fsr.transform.fewer.called import Called, called, folds_of_atomics, is_wait
from fsr.transform.fewer.expressions import Expressions
from fsr.transform.fewer.launched import Launched
from fsr.transform.fewer.values import FIXED, UNSET, ZERO, Frame, UnknownError, Value, converted, joined
from fsr.transform.target import Target

_ROUNDS, _DEPTH = 8, 4
_MIRRORED = {"<": "max", "<=": "max", ">": "min", ">=": "min"}  # if (a < b) a = b


@dataclass
class Commutes(Expressions):
    """``axis``: of the grid, along which blocks are taken together; ``read_only``: parameters whose memory the kernel
    does not write; ``partial``: those behind which each block has a place, for what a later launch folds."""

    target: Target
    axis: str
    read_only: frozenset[str]
    partial: frozenset[str] = frozenset()
    held: dict[str, Value] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)  # parameters to whose memory leaves go
    depth: int = 0
    last: bool = False

    def __post_init__(self) -> None:
        self.launched = Launched(self.target)

    def passes(self, body: Block, env: Frame) -> bool:
        """Whether the statements commute, with such values at first; they are in ``env`` afterwards."""
        try:
            self._settle(body, env)
            self.last = True
            self.run(body, env)
        except UnknownError:
            return False
        return True

    def _settle(self, body: Block, env: Frame) -> Value:
        """Go through statements until nothing new is found; gives what they return."""
        result = UNSET
        for _ in range(_ROUNDS):
            before = (env.copied(), dict(self.held), result)
            result = joined(result, self.run(body, env))
            if before == (env, self.held, result):
                return result
        raise UnknownError

    def is_fixed(self, body: Block, env: Frame) -> bool:
        """Whether the statements know nothing of a block's place along the axis, and write to shared memory and
        variables of their own alone."""
        own, held, added = env.copied(), dict(self.held), set(self.added)
        try:
            self._settle(body, own)
        except UnknownError:
            self.held, self.added = held, added
            return False
        env.become(own)
        return True

    def hold(self, counted: Mapping[str, str], env: Frame) -> bool:
        """Put what points add to shared memory there, by an atomic function each; says whether it starts from what
        adds nothing."""
        try:
            for name, function in counted.items():
                place = env[name]
                self.store(place, Value("leaves", BY_ATOMIC[function], place.type))
        except UnknownError:
            return False
        return True

    # ------------------------------------------------------------ statements

    def run(self, body: Block, env: Frame) -> Value:
        """Go through statements once; gives what they return."""
        result = UNSET
        for s in body:
            result = joined(result, self._statement(s, env))
        return result

    def _statement(self, s: Stmt, env: Frame) -> Value:
        match s:
            case Comment() | Jump():
                pass
            case Declare():
                self._declare(s, env)
            case Assign(target, op, value):
                self._assign(target, op, value, env)
            case ExprStmt(expr):
                self._effect(expr, env)
            case If():
                return self._branch(s, env)
            case For(var=var, start=start, bound=bound, step=step, body=body):
                self._set(var, self.fixed(start, env), env)
                for e in (bound, step):
                    self.fixed(e, env)
                return self.run(body, env)
            case While(test, body):
                self.fixed(test, env)
                return self.run(body, env)
            case Scope(body):
                return self.run(body, env)
            case Return(value):
                return UNSET if value is None else self.value(value, env)
            case _:
                raise UnknownError
        return UNSET

    def _declare(self, s: Declare, env: Frame) -> None:
        if "&" in s.type:
            raise UnknownError
        type_ = self.plain(s.type)
        if "__shared__" in s.qualifiers:
            memory = f"{self.depth and id(s)}:{s.name}"
            self.held.setdefault(memory, UNSET)
            env[s.name] = Value("shared", type=type_, memory=memory, variable=not s.dims)
            return
        if "static" in s.qualifiers or "extern" in s.qualifiers:
            raise UnknownError
        if "*" not in s.type and "auto" not in s.type:
            env.types[s.name] = s.type
        if part := "" if self.depth else self.launched.part(s.name):
            self.held.setdefault(part, UNSET)
            self._set(s.name, Value("shared", type=self.plain(s.type.replace("*", "")), memory=part), env)
        elif s.init is None or (s.dims and isinstance(s.init, OpaqueExpr)):
            self._set(s.name, UNSET if s.init is None else self._braces(s.init), env)
        else:
            self._set(s.name, self.as_type(self.value(s.init, env), s.type), env)

    @staticmethod
    def _braces(e: Expr) -> Value:
        text = e.text.replace(" ", "") if isinstance(e, OpaqueExpr) else ""
        if text.strip("{}").strip("0.f,"):
            raise UnknownError
        return ZERO

    def plain(self, type_: str) -> str:
        """A type in its usual spelling."""
        return number_type(type_, self.target.aliases)

    def as_type(self, value: Value, type_: str) -> Value:
        """A value as a type that is written somewhere."""
        if not value.is_address:
            return converted(value, self.plain(type_))
        plain = self.plain(type_)
        return value if "auto" in type_ or plain == value.type else self.seen_as(value, plain)

    def seen_as(self, address: Value, type_: str) -> Value:
        """An address as one of other elements: memory of the launch's has no type of its own."""
        if address.kind == "shared" and address.type not in ("char", "signed char", "unsigned char"):
            raise UnknownError
        return replace(address, type=type_)

    def _set(self, name: str, value: Value, env: Frame) -> None:
        old = env.get(name, UNSET)
        if value.is_address or old.is_address:
            if value != old and old != UNSET:
                raise UnknownError
            env[name] = value
        else:
            env[name] = joined(old, self.as_type(value, env.types.get(name, "auto")))

    def _assign(self, target: Expr, op: str, value: Expr, env: Frame) -> None:
        new = self.value(value if op == "=" else Binary(op[:-1], target, value), env)
        if isinstance(target, Name) and target.text in env and not env[target.text].variable:
            self._set(target.text, new, env)
            return
        if (left := self._left_to_others(target)) and op == "=":
            if new.kind == "leaves":
                self.added.add(left)
            elif new.kind != "unset" or self.last:
                raise UnknownError
            return
        place = self.place(target, env)
        if isinstance(place, str):  # an array of the thread's own
            self._set(place, new, env)
        elif place.kind != "shared":
            raise UnknownError
        else:
            self.store(place, new)

    def _left_to_others(self, target: Expr) -> str:
        """The parameter behind which a place is the block's own; '' where it is none."""
        match target:
            case Index(Name(name), Member(Name("blockIdx"), axis)) if name in self.partial and axis == self.axis:
                return name
        return ""

    def store(self, place: Value, value: Value) -> None:
        """Put a value into shared memory."""
        self.held[place.memory] = joined(self.held[place.memory], converted(value, place.type))

    # ------------------------------------------------------------ effects

    def _effect(self, e: Expr, env: Frame) -> None:
        if is_wait(e):
            return
        match e:
            case Call(Name(name), (address, value)) if name in ATOMICS and name not in self.target.functions.own:
                self._atomic(name, self.value(address, env), self.value(value, env))
            case Call(Name(name), (address, value)) if fold := folds_of_atomics(self.target.source).get(name):
                self._atomic(f"atomic{fold}", self.value(address, env), self.value(value, env))
            case Call():
                self.value(e, env)
            case _:
                raise UnknownError

    def _atomic(self, name: str, address: Value, value: Value) -> None:
        fold = BY_ATOMIC[name]
        value = converted(value, address.type)
        if value.kind == "unset" and not self.last:
            return
        right = value.kind == "leaves" and value.fold == fold
        nothing = value.kind == "fixed" and (value.zero or fold in ("max", "min", "and", "or"))
        if not address.is_address or not (right or nothing):
            raise UnknownError
        if address.kind == "shared":
            self.store(address, value)
        elif right:
            self.added.add(address.memory)

    def _branch(self, s: If, env: Frame) -> Value:
        """An ``if`` on what is fixed, one that keeps the greater or the less, or whether there is anything to add."""
        rest = [t for t in conjuncts(s.test) if not self._asks_what_is_fixed(t, env)]
        if not rest:
            return joined(self.run(s.then, env), self.run(s.orelse, env))
        if len(rest) > 1 or s.orelse:
            raise UnknownError
        match rest[0], tuple(t for t in s.then if not isinstance(t, Comment)):
            case Binary("!=", value, none), (ExprStmt(Call(Name("atomicAdd"), (_, added))),) if added == value:
                if not is_zero(none):
                    raise UnknownError
                return self.run(s.then, env)
            case Binary(op, left, right), (Assign(kept, "=", new),) if op in _MIRRORED and {kept, new} == {left, right}:
                fold = _MIRRORED[op] if kept == left else {"max": "min", "min": "max"}[_MIRRORED[op]]
                self._assign(kept, "=", Call(Name(fold), (left, right)), env)
                return UNSET
        raise UnknownError

    def _asks_what_is_fixed(self, test: Expr, env: Frame) -> bool:
        try:
            return self.value(test, env).kind in ("fixed", "unset")
        except UnknownError:
            return False

    # ------------------------------------------------------------ functions

    def of_function(self, call: Call, env: Frame) -> Value:
        """What a function of the file gives, gone through with such arguments."""
        found: Called | None = called(call, self.target)
        if found is None or self.depth == _DEPTH or len(found.form.params) != len(call.args):
            raise UnknownError
        own = Frame(dict.fromkeys(found.numbers, FIXED))
        for param, arg in zip(found.form.params, call.args, strict=True):
            if "&" in param.type:
                raise UnknownError
            type_ = "auto" if found.is_open(param.type) else param.type
            own[param.name] = self.as_type(self.value(arg, env), type_)
            if not param.is_pointer:
                own.types[param.name] = type_
        self.depth += 1
        try:
            result = self._settle(found.form.body, own)
        finally:
            self.depth -= 1
        return (
            result if found.is_open(found.result) or result.is_address else converted(result, self.plain(found.result))
        )

    def is_constant(self, name: str) -> bool:
        """Whether a name is that of a number of the file's, or of CUDA's."""
        return name in self.target.constants or name in CONSTANTS or name in _NUMBERS


_NUMBERS = frozenset(["warpSize", "DBL_MIN", "LLONG_MAX", "LLONG_MIN", "ULLONG_MAX", "CUDART_INF", "__INT_MAX__"])


def values_of(kernel: KernelForm, aliases: Mapping[str, str]) -> Frame:
    """What a kernel's parameters are."""
    found = Frame()
    for p in kernel.params:
        found[p.name] = Value("global", type=number_type(p.type, aliases), memory=p.name) if p.is_pointer else FIXED
    return found
