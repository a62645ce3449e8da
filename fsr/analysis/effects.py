"""What statements do to memory: which buffers they read, write and update atomically, and at which index.

Anything that cannot be followed (a call of an unknown function, a pointer that goes somewhere else, verbatim
text) raises :class:`Unclear`; a recogniser that meets it offers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fsr.analysis.aliasing import Groups, memories
from fsr.analysis.calls import ATOMICS, is_load
from fsr.analysis.functions import NO_FUNCTIONS, Functions
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Ternary,
    Unary,
)
from fsr.source.walk import exprs_of, walk_stmts


class Unclear(Exception):  # noqa: N818  # not an error: the recogniser gives up
    """Raised within the recognisers where the form does not tell what happens."""


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a buffer: ``pointer[index]`` in the code. ``root`` names the memory: a parameter, or one
    name for a whole group of parameters that may alias. ``kind``: read, write or atomic."""

    root: str
    pointer: str
    index: Expr
    kind: str


@dataclass(frozen=True, slots=True)
class Pointers:
    """The pointers of a kernel: the memory each may point into and the type of its elements. ``functions``: the
    file's."""

    roots: Mapping[str, str]
    elements: Mapping[str, str]
    functions: Functions = NO_FUNCTIONS

    def root(self, expr: Expr) -> str | None:
        """The memory that a pointer expression points into; None when it is no known pointer."""
        match expr:
            case Name(text=text):
                return self.roots.get(text)
            case Cast(operand=inner):
                return self.root(inner)
            case Binary(op="+" | "-", left=left, right=right):
                return self.root(left) or self.root(right)
            case Unary(op="&", operand=Index(base=base)):
                return self.root(base)
        return None


def element_type(pointer_type: str) -> str:
    """``float`` for ``const float *``."""
    words = pointer_type.replace("*", " * ").split()
    return " ".join(w for w in words if w not in ("const", "volatile", "*", "__restrict__", "__restrict"))


def pointers(
    kernel: KernelForm, parameter_names: Mapping[str, str], aliasing: Groups = (), functions: Functions = NO_FUNCTIONS
) -> Pointers:
    """The pointers of a kernel. ``parameter_names`` maps its parameters to what the launch passes for them;
    ``functions`` are those of the file.

    Raises Unclear on a local pointer whose memory is not told by its initial value.
    """
    group = memories(aliasing)
    roots, elements = {}, {}
    for param in kernel.params:
        if param.is_pointer:
            if param.type.count("*") > 1 or "volatile" in param.type:
                raise Unclear
            passed = parameter_names.get(param.name, param.name)
            roots[param.name] = group.get(passed, passed)
            elements[param.name] = element_type(param.type)
    for stmt in walk_stmts(kernel.body):
        if isinstance(stmt, Declare) and "*" in stmt.type:
            known = Pointers(roots, elements)
            root = known.root(stmt.init) if stmt.init is not None else None
            if (
                root is None
                or stmt.dims
                or "volatile" in stmt.type
                or (stmt.name in roots and roots[stmt.name] != root)
            ):
                raise Unclear
            roots[stmt.name], elements[stmt.name] = root, element_type(stmt.type)
    return Pointers(roots, elements, functions)


def accesses(body: Iterable[Stmt], known: Pointers) -> list[Access]:
    """Every access that the statements, nested ones included, may make, in the order of the text.

    Raises Unclear.
    """
    found: list[Access] = []
    reader = _Collector(known, found)
    for stmt in walk_stmts(body):
        match stmt:
            case OpaqueStmt():
                raise Unclear
            case Declare(type=type_, init=init) if "*" in type_ and init is not None:
                reader.pointer_value(init)
            case Assign(target=Name(text=text), op=op, value=value) if text in known.roots:
                if op not in ("+=", "-="):
                    raise Unclear
                reader.read(value)
            case Assign(target=target, op=op, value=value):
                reader.read(value)
                reader.write(target, also_read=op != "=")
            case _:
                for expr in exprs_of(stmt):
                    reader.read(expr)
    return found


class _Collector:
    """Walks expressions and notes accesses."""

    def __init__(self, known: Pointers, found: list[Access]) -> None:
        self.known, self.found = known, found

    def note(self, pointer: Expr, index: Expr, kind: str) -> None:
        """One access of ``pointer[index]``, the pointer's own offset folded into the index."""
        match pointer:
            case Name(text=text) if text in self.known.roots:
                self.found.append(Access(self.known.roots[text], text, index, kind))
                self.read(index)
            case Binary(op="+", left=left, right=right) if self.known.root(left) is not None:
                self.note(left, right if index == Literal("0") else Binary("+", right, index), kind)
            case Unary(op="&", operand=Index(base=base, index=offset)):
                self.note(base, offset if index == Literal("0") else Binary("+", offset, index), kind)
            case _:
                raise Unclear

    def read(self, expr: Expr) -> None:
        """An expression that is evaluated for its value."""
        match expr:
            case Index(base=base, index=index):
                if self.known.root(base) is not None:
                    self.note(base, index, "read")
                else:
                    self.read(base)
                    self.read(index)
            case Unary(op="*", operand=inner):
                self.note(inner, Literal("0"), "read")
            case Unary(op="&"):
                raise Unclear
            case Unary(operand=inner) | Cast(operand=inner):
                self.read(inner)
            case Member(base=base, arrow=arrow):
                if arrow:
                    raise Unclear
                self.read(base)
            case Binary(left=left, right=right):
                self.read(left)
                self.read(right)
            case Ternary(test=test, yes=yes, no=no):
                for part in (test, yes, no):
                    self.read(part)
            case Call():
                self.call(expr)
            case Name(text=text) if text in self.known.roots:
                raise Unclear  # a bare pointer: where it goes is not followed
            case OpaqueExpr():
                raise Unclear

    def call(self, call: Call) -> None:
        """A call: of a pure function, a cached load or an atomic."""
        name = call.callee.text if isinstance(call.callee, Name) else ""
        if name in ATOMICS and len(call.args) == 2:
            self.note(call.args[0], Literal("0"), "atomic")
            self.read(call.args[1])
        elif is_load(call) and len(call.args) == 1:
            self.note(call.args[0], Literal("0"), "read")
        elif self.known.functions.only_computes(name):
            for arg in call.args:
                self.read(arg)
        else:
            raise Unclear

    def write(self, target: Expr, *, also_read: bool) -> None:
        """The target of an assignment."""
        match target:
            case Name():
                return
            case Index(base=base, index=index):
                if self.known.root(base) is None:
                    self.write(base, also_read=False)
                    self.read(index)
                    return
                if also_read:
                    self.note(base, index, "read")
                self.note(base, index, "write")
            case Unary(op="*", operand=inner):
                if also_read:
                    self.note(inner, Literal("0"), "read")
                self.note(inner, Literal("0"), "write")
            case Member(base=base, arrow=False):
                self.write(base, also_read=True)
            case _:
                raise Unclear

    def pointer_value(self, expr: Expr) -> None:
        """The initial value of a pointer: only its offsets are evaluated."""
        match expr:
            case Name():
                return
            case Cast(operand=inner):
                self.pointer_value(inner)
            case Binary(op="+" | "-", left=left, right=right):
                for part in (left, right):
                    if self.known.root(part) is not None:
                        self.pointer_value(part)
                    else:
                        self.read(part)
            case Unary(op="&", operand=Index(base=base, index=index)):
                self.pointer_value(base)
                self.read(index)
            case _:
                raise Unclear
