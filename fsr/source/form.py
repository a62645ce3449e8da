"""The loop-nest form: a kernel as typed expressions and statements that actions rewrite.

Everything is frozen and compares by value; ``span`` (byte range in the text it was parsed from) does not take
part in comparison. What the parser cannot express is kept verbatim as OpaqueExpr or OpaqueStmt, so every
kernel has a form, and emitting a parsed kernel gives code with the same meaning. Use
:func:`dataclasses.replace` and the walkers in :mod:`fsr.source.walk` to change one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Span = tuple[int, int]

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, possibly qualified (``ns::x``)."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, character, string or boolean, as written (``1.0f``, ``0x1u``, ``true``)."""

    text: str


@dataclass(frozen=True, slots=True)
class Unary:
    """Prefix operator: - + ! ~ * &. (++ and -- are Assign statements, or OpaqueExpr inside expressions.)"""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """Infix operator, including && || , and comparisons; never an assignment."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Ternary:
    test: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """``callee<template_args>(args)``; callee is usually a Name. Constructor-like casts ``float(x)`` too."""

    callee: Expr
    args: tuple[Expr, ...]
    template_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """``base[index]``; two-dimensional arrays nest: a[i][j] is Index(Index(a, i), j)."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Member:
    """``base.name`` or ``base->name``: threadIdx.x is Member(Name('threadIdx'), 'x')."""

    base: Expr
    name: str
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """``(type) operand`` or ``static_cast<type>(operand)``, ``reinterpret_cast`` (named in ``style``)."""

    type: str
    operand: Expr
    style: str = "c"


@dataclass(frozen=True, slots=True)
class OpaqueExpr:
    """Verbatim text that the form does not model; assume that it reads and writes anything it names."""

    text: str


Expr = Name | Literal | Unary | Binary | Ternary | Call | Index | Member | Cast | OpaqueExpr


def number(value: int) -> Expr:
    """An integer literal."""
    return Literal(str(value))


def conjuncts(test: Expr) -> tuple[Expr, ...]:
    """The parts of ``a && b && c``."""
    match test:
        case Binary("&&" | "and", left, right):
            return *conjuncts(left), *conjuncts(right)
    return (test,)


def conjunction(tests: Iterable[Expr]) -> Expr | None:
    """The tests joined by ``&&``; None of none."""
    joined: Expr | None = None
    for test in tests:
        joined = test if joined is None else Binary("&&", joined, test)
    return joined


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Declare:
    """One declared variable. ``int i = 0, j;`` parses to two. ``type`` is the base type with its stars
    (``const float *``), ``dims`` array extents (``OpaqueExpr('')`` for ``[]``), ``qualifiers`` such as __shared__,
    extern, static, constexpr, ``__align__(16)``."""

    type: str
    name: str
    init: Expr | None = None
    dims: tuple[Expr, ...] = ()
    qualifiers: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """``target op value`` as a statement; op is = += -= *= /= %= &= |= ^= <<= >>=. ``i++`` is ``i += 1``."""

    target: Expr
    op: str
    value: Expr
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ExprStmt:
    """An expression for its effect: calls such as atomicAdd(...) or __syncthreads()."""

    expr: Expr
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    constexpr: bool = False  # ``if constexpr``
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """A counted loop ``for (type var = start; var relation bound; var += step)``.

    ``type`` is None when the variable was declared before. ``pragmas`` are the texts of the pragmas right
    before the loop (``#pragma unroll 4``). Loops of any other shape are While or OpaqueStmt.
    """

    type: str | None
    var: str
    start: Expr
    relation: str  # < <= > >= !=
    bound: Expr
    step: Expr  # added; negative for a descending loop
    body: tuple[Stmt, ...]
    pragmas: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """``while (test)``. A ``for`` that For cannot hold (``s >>= 1``) is Scope((init, While((*body, update)))), and
    is emitted as ``for`` again; ``for (;;)`` is While(Literal('true'))."""

    test: Expr
    body: tuple[Stmt, ...]
    pragmas: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    value: Expr | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Jump:
    """``break`` or ``continue``."""

    keyword: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """A braced block of its own."""

    body: tuple[Stmt, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comment:
    text: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OpaqueStmt:
    """Verbatim text (asm, switch, goto, do-while, macros): actions must leave it and everything it names alone."""

    text: str
    span: Span | None = field(default=None, compare=False)


Stmt = Declare | Assign | ExprStmt | If | For | While | Return | Jump | Scope | Comment | OpaqueStmt

# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: type with stars and const (``const float *``), ``restrict`` when __restrict__ was written, and the
    text of its ``default`` argument."""

    type: str
    name: str
    restrict: bool = False
    default: str = ""

    @property
    def is_pointer(self) -> bool:
        """Whether the parameter is a pointer (or an array, which decays to one)."""
        return "*" in self.type


@dataclass(frozen=True, slots=True)
class KernelForm:
    """One __global__ function. ``template`` is its parameter list text (``int BLOCK``) or None;
    ``launch_bounds`` the texts inside __launch_bounds__(...), () when absent; ``prefix`` other qualifiers
    (``extern "C"``, ``static``). ``span`` covers the whole definition, template header included.
    ``macro_words``: the names of the file's macros and what these mention; ``by_reference``: which arguments the
    file's functions may change (fsr.source.references)."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    template: str | None = None
    launch_bounds: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)
    macro_words: frozenset[str] = field(default=frozenset(), compare=False)
    by_reference: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def template_parameters(self) -> tuple[tuple[str, str], ...]:
        """First word and name of each template parameter: ('int', 'BLOCK'), ('typename', 'T')."""
        words = (p.split("=")[0].split() for p in (self.template or "").split(","))
        return tuple((w[0], w[-1]) for w in words if w)

    def param(self, name: str) -> Param:
        """The parameter of that name. Raises KeyError."""
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(name)
