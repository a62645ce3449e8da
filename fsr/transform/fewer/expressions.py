"""The values of a fold's expressions: what is fixed, and what is made of leaves in a way that commutes with folding."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace

from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Member, Name, Ternary, Unary
from fsr.source.walk import BUILTINS, is_zero
from fsr.transform.fewer.values import (
    FIXED,
    UNSET,
    ZERO,
    Frame,
    UnknownError,
    Value,
    as_bits,
    folded,
    joined,
    scaled,
    unknown,
)
from fsr.transform.target import Target

_SHUFFLES = re.compile(r"__shfl(_up|_down|_xor)?(_sync)?")
_GROUPS = re.compile(r"(cg::|cooperative_groups::)?(this_thread_block|tiled_partition)")
_GROUP_FOLD = re.compile(r"(cg|cooperative_groups)::reduce")
_GROUP_OPERATIONS = {"plus": "sum", "greater": "max", "less": "min", "bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
_VOTES = frozenset(["__activemask", "__ballot_sync"])
_ASKED = frozenset(["thread_rank", "size", "num_threads", "meta_group_rank", "meta_group_size"])
_EXTREMES = {"max": "max", "fmax": "max", "fmaxf": "max", "umax": "max",
             "min": "min", "fmin": "min", "fminf": "min", "umin": "min"}  # fmt: skip
_REDUCED = re.compile(r"__reduce_(add|min|max|and|or|xor)_sync")
_TYPES = frozenset(["float", "double", "int", "unsigned"])
_BITWISE = {"&": "and", "|": "or", "^": "xor"}
_COMPARED = {">": ("max", "min"), ">=": ("max", "min"), "<": ("min", "max"), "<=": ("min", "max")}


class Expressions:
    """Values of expressions, by the values of names."""

    target: Target
    axis: str
    read_only: frozenset[str]
    held: dict[str, Value]

    @abstractmethod
    def as_type(self, value: Value, type_: str) -> Value:
        """A value as a type that is written somewhere."""

    @abstractmethod
    def of_function(self, call: Call, env: Frame) -> Value:
        """What a function of the file gives."""

    @abstractmethod
    def is_constant(self, name: str) -> bool:
        """Whether a name is that of a number of the file's, or of CUDA's."""

    def fixed(self, e: Expr, env: Frame) -> Value:
        """An expression that has to be fixed. Raises UnknownError."""
        found = self.value(e, env)
        if found.kind not in ("fixed", "unset"):
            raise UnknownError
        return found

    def value(self, e: Expr, env: Frame) -> Value:
        """What an expression is. Raises UnknownError."""
        match e:
            case Literal():
                return ZERO if is_zero(e) else Value("fixed", positive=not e.text.startswith("-"))
            case Name(text):
                return self._named(text, env)
            case Member(Name(text), axis) if text in BUILTINS:
                if text in ("blockIdx", "gridDim") and axis == self.axis:
                    raise UnknownError
                return FIXED
            case Member(base, _, arrow):
                return self._no_address(self.fixed(base, env)) if not arrow else unknown()
            case Unary("*", _) | Index():
                place = self.place(e, env)
                return env[place] if isinstance(place, str) else self._loaded(place)
            case Unary("&", operand):
                place = self.place(operand, env)
                return unknown() if isinstance(place, str) else place
            case Unary(op, operand):
                return self._unary(op, self.value(operand, env))
            case Binary(op, left, right):
                return self._binary(op, self.value(left, env), self.value(right, env))
            case Ternary(test, yes, no):
                return self._chosen(test, yes, no, env)
            case Cast(type_, operand):
                return self.as_type(self.value(operand, env), type_)
            case Call():
                return self._called(e, env)
        raise UnknownError

    # ------------------------------------------------------------ names and memory

    def _named(self, text: str, env: Frame) -> Value:
        if text in env:
            return self._loaded(env[text]) if env[text].variable else env[text]
        if self.is_constant(text):
            return FIXED
        raise UnknownError

    @staticmethod
    def _no_address(value: Value) -> Value:
        return unknown() if value.is_address else value

    def place(self, e: Expr, env: Frame) -> Value | str:
        """The memory that an lvalue stands for; the name of an array of the thread's own. Raises UnknownError."""
        match e:
            case Unary("*", pointer):
                return self._pointed(self.value(pointer, env))
            case Index(base, index):
                self.fixed(index, env)
                if isinstance(base, Index):
                    return self.place(base, env)
                if isinstance(base, Name) and base.text in env and not env[base.text].is_address:
                    return base.text
                return self._pointed(self.value(base, env))
            case Name(text) if text in env and env[text].variable:
                return replace(env[text], variable=False)
        raise UnknownError

    @staticmethod
    def _pointed(value: Value) -> Value:
        return value if value.is_address else unknown()

    def _loaded(self, place: Value) -> Value:
        if place.kind == "shared":
            held = self.held[place.memory]
            if held.kind == "leaves" and held.type != place.type:
                raise UnknownError
            return held
        return FIXED if place.memory in self.read_only else unknown()

    # ------------------------------------------------------------ operations

    @staticmethod
    def _unary(op: str, value: Value) -> Value:
        if value.is_address:
            raise UnknownError
        if value.kind == "leaves":
            if op == "-" and value.fold == "sum":
                return replace(value, positive=False)
            return value if op == "+" else unknown()
        return FIXED if value.kind == "fixed" else value

    def _binary(self, op: str, left: Value, right: Value) -> Value:
        if left.is_address or right.is_address:
            return self._moved(op, left, right)
        if left.kind != "leaves" and right.kind != "leaves":
            positive = op in "+*/" and left.positive and right.positive
            return UNSET if "unset" in (left.kind, right.kind) else Value("fixed", positive=positive)
        if op == "+":
            return folded(left, right, "sum")
        if op == "-":
            found = folded(left, right, "sum")
            return replace(found, positive=False)
        if op == "*":
            return scaled(left, right) if left.kind == "leaves" else scaled(right, left)
        if op == "/":
            return scaled(left, right)
        if op in _BITWISE:
            return folded(left, right, _BITWISE[op])
        raise UnknownError

    @staticmethod
    def _moved(op: str, left: Value, right: Value) -> Value:
        """A pointer that moves on by what is fixed."""
        if op == "+" and right.is_address:
            left, right = right, left
        if op not in "+-" or right.kind not in ("fixed", "unset"):
            raise UnknownError
        return left

    def _chosen(self, test: Expr, yes: Expr, no: Expr, env: Frame) -> Value:
        try:
            self.fixed(test, env)
        except UnknownError:
            match test:
                case Binary(op, left, right) if op in _COMPARED and {left, right} == {yes, no}:
                    fold = _COMPARED[op][yes != left]
                    return folded(self.value(left, env), self.value(right, env), fold)
            raise
        one, other = self.value(yes, env), self.value(no, env)
        if one.is_address or other.is_address:
            return one if one == other else unknown()
        return joined(one, other)

    # ------------------------------------------------------------ calls

    def _called(self, e: Call, env: Frame) -> Value:
        name = e.callee.text if isinstance(e.callee, Name) else ""
        if isinstance(e.callee, Member):
            return self._of_group(e, e.callee, env)
        if name in self.target.functions.own:
            known = all(self._is_fixed(a, env) for a in e.args) and self.target.functions.only_computes(name)
            return FIXED if known else self.of_function(e, env)
        if _GROUPS.fullmatch(name):
            return FIXED
        if _SHUFFLES.fullmatch(name):
            args = e.args[1:] if name.endswith("_sync") else e.args
            for other in (*args[1:], *e.args[: len(e.args) - len(args)]):
                self.fixed(other, env)
            return self._no_address(self.value(args[0], env)) if args else unknown()
        if name in _VOTES and all(self._is_fixed(a, env) for a in e.args):
            return FIXED
        if _GROUP_FOLD.fullmatch(name) and len(e.args) == 3:
            self.fixed(e.args[0], env)
            value = self.value(e.args[1], env)
            return folded(value, value, _group_operation(e.args[2]))
        if match := _REDUCED.fullmatch(name):
            self.fixed(e.args[0], env)
            fold = {"add": "sum"}.get(match[1], match[1])
            value = self.value(e.args[1], env)
            return folded(value, value, fold)
        bare = name.removeprefix("::").removeprefix("std::")
        if bare in _EXTREMES and len(e.args) == 2:
            return folded(self.value(e.args[0], env), self.value(e.args[1], env), _EXTREMES[bare])
        if len(e.args) == 1 and (bare in _TYPES or name in self.target.type_names):
            return self.as_type(self.value(e.args[0], env), name)
        if len(e.args) == 1 and (found := as_bits(self.value(e.args[0], env), bare)) is not None:
            return found
        if self.target.functions.builtin(name) and all(self._is_fixed(a, env) for a in e.args):
            return FIXED
        raise UnknownError

    def _is_fixed(self, e: Expr, env: Frame) -> bool:
        try:
            return self.value(e, env).kind == "fixed"
        except UnknownError:
            return False

    def _of_group(self, e: Call, method: Member, env: Frame) -> Value:
        """What a method of a group of threads gives."""
        self.fixed(method.base, env)
        if method.name in _ASKED and not e.args:
            return FIXED
        if re.fullmatch(r"shfl(_up|_down|_xor)?", method.name) and e.args:
            for other in e.args[1:]:
                self.fixed(other, env)
            return self._no_address(self.value(e.args[0], env))
        raise UnknownError


def _group_operation(e: Expr) -> str:
    """What ``cg::plus<T>()`` and its like stand for."""
    match e:
        case Call(Name(name)):
            return _GROUP_OPERATIONS.get(name.rsplit("::", 1)[-1], "")
    raise UnknownError
