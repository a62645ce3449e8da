"""Walking the loop-nest form, and small questions about it: which names it uses, changes and reads.

Walkers go in the order of the text, parents before children. Opaque nodes are leaves; the names in their text count
as read *and* written. :mod:`fsr.source.mapping` changes forms.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
    Jump,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.remembered import remembered

Block = tuple[Stmt, ...]

_LEAVES = frozenset(["str", "bool", "int", "str | None", "tuple[str, ...]"])  # types of fields without nodes
_FIELDS: dict[type, tuple[str, ...] | None] = {}
BUILTINS = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"])
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
BARRIER = ExprStmt(Call(Name("__syncthreads"), ()))
_BARRIERS = re.compile(r"__sync(threads|warp)|__barrier_sync|\bbar\.|\b(sync|arrive_and_wait|barrier_\w+|wait)\b")
_WARP_WIDE = re.compile(
    r"__(shfl|ballot|any|all|match|activemask|reduce|syncwarp|uni)\w*|\b(shfl|shfl_\w+|ballot|reduce)\b|coalesced_threads"
)

# ---------------------------------------------------------------- children


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Unary: lambda e: (e.operand,),
    Cast: lambda e: (e.operand,),
    Member: lambda e: (e.base,),
    Binary: lambda e: (e.left, e.right),
    Index: lambda e: (e.base, e.index),
    Ternary: lambda e: (e.test, e.yes, e.no),
    Call: lambda e: (e.callee, *e.args),
}


def subexprs(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    operands = _OPERANDS.get(type(e))
    return () if operands is None else operands(e)


def exprs_of(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement (not those of nested statements)."""
    match s:
        case Declare():
            return (*s.dims, *(() if s.init is None else (s.init,)))
        case Assign(target, _, value):
            return target, value
        case ExprStmt(expr):
            return (expr,)
        case If() | While():
            return (s.test,)
        case For():
            return s.start, s.bound, s.step
        case Return(value):
            return () if value is None else (value,)
    return ()


BLOCKS: dict[type, tuple[str, ...]] = {If: ("then", "orelse"), For: ("body",), While: ("body",), Scope: ("body",)}


def blocks_of(s: Stmt) -> tuple[Block, ...]:
    """The nested statement lists of a statement."""
    return tuple(getattr(s, name) for name in BLOCKS.get(type(s), ()))


# ---------------------------------------------------------------- walking


# Listing the moves of a candidate walks its text millions of times: a stack in place of generators within generators.


def walk_expr(e: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    stack = [e]
    while stack:
        e = stack.pop()
        yield e
        operands = _OPERANDS.get(type(e))
        if operands is not None:
            stack.extend(reversed(operands(e)))


def walk_stmts(stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, nested ones included."""
    stack = [iter(stmts)]
    while stack:
        for s in stack[-1]:
            yield s
            names = BLOCKS.get(type(s))
            if names is not None:
                stack.extend(iter(getattr(s, name)) for name in reversed(names))
                break
        else:
            stack.pop()


def walk_exprs(stmts: Iterable[Stmt]) -> Iterator[Expr]:
    """Every expression and subexpression of every statement, nested ones included."""
    for s in walk_stmts(stmts):
        for e in exprs_of(s):
            yield from walk_expr(e)


def nodes(node: Any) -> Iterator[Any]:
    """Every expression and statement inside a node or a tuple of nodes (itself too), parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(reversed(node))
        elif (fields := _fields(type(node))) is not None:
            yield node
            stack.extend([getattr(node, name) for name in fields])


def _fields(of: type) -> tuple[str, ...] | None:
    """The names of a node's fields that may hold nodes, last one first; None for what is no node."""
    if of not in _FIELDS:
        fields = dataclasses.fields(of) if dataclasses.is_dataclass(of) else None
        held = [f.name for f in fields or () if f.name != "span" and f.type not in _LEAVES]
        _FIELDS[of] = None if fields is None else tuple(reversed(held))
    return _FIELDS[of]


# ---------------------------------------------------------------- names


def opaque_names(text: str) -> frozenset[str]:
    """The identifiers in verbatim text (member names after a dot excepted)."""
    return frozenset(_WORD.findall(re.sub(r'"(?:\\.|[^"\\])*"', '""', text)))


def names_in(e: Expr) -> frozenset[str]:
    """Every name an expression mentions: read, called or written, opaque text included."""
    if isinstance(e, Name):
        return frozenset((e.text,))
    return frozenset() if isinstance(e, Literal) else _names_in(e)


@remembered
def _names_in(e: Expr) -> frozenset[str]:
    found: set[str] = set()
    for x in walk_expr(e):
        if isinstance(x, Name):
            found.add(x.text)
        elif isinstance(x, OpaqueExpr):
            found |= opaque_names(x.text)
    return frozenset(found)


def names_mentioned(stmts: Iterable[Stmt]) -> frozenset[str]:
    """Every name the statements mention or declare, opaque text and template arguments included."""
    return frozenset().union(*map(_mentioned_in, stmts))


@remembered
def _mentioned_in(s: Stmt) -> frozenset[str]:
    found: set[str] = set()
    for e in exprs_of(s):
        found |= names_in(e)
        for x in walk_expr(e):
            if isinstance(x, Call):
                found.update(n for t in x.template_args for n in opaque_names(t))
    match s:
        case Declare(name=name) | For(var=name):
            found.add(name)
        case OpaqueStmt(text):
            found |= opaque_names(text)
    return frozenset(found).union(*(_mentioned_in(x) for block in blocks_of(s) for x in block))


def identifiers(node: Any) -> frozenset[str]:
    """Every identifier used or declared inside, the words of opaque text too; a member is one name with what it is of
    (``threadIdx.x``), and a built-in's own name is there only where it stands alone."""
    found: set[str] = set()
    alone: dict[str, int] = dict.fromkeys(BUILTINS, 0)
    for part in nodes(node):
        match part:
            case Name(text) if text in BUILTINS:
                alone[text] += 1
            case Name(text) | Declare(name=text) | For(var=text):
                found.add(text)
            case Member(Name(base), name):
                found.add(f"{base}.{name}")
                if base in BUILTINS:
                    alone[base] -= 1
            case OpaqueExpr(text) | OpaqueStmt(text):
                found.update(re.findall(r"[A-Za-z_]\w*(?:\.\w+)?", text))
    return frozenset(found | {name for name, count in alone.items() if count > 0})


def declared(stmts: Iterable[Stmt]) -> dict[str, Declare]:
    """The variables declared anywhere in the statements (the last declaration of a name wins); loop variables
    of ``for (int j ...)`` are not among them."""
    return {s.name: s for s in walk_stmts(stmts) if isinstance(s, Declare)}


def variables(stmts: Iterable[Stmt]) -> list[str]:
    """The name of every declaration in the statements and of every loop's variable, as often as there is one."""
    return [name for s in stmts for name in _variables_of(s)]


@remembered
def _variables_of(s: Stmt) -> tuple[str, ...]:
    own = (x for x in walk_stmts((s,)) if isinstance(x, Declare | For))
    return tuple(x.name if isinstance(x, Declare) else x.var for x in own)


def base_name(e: Expr) -> str | None:
    """The variable an lvalue belongs to: ``a`` of a[i][j].x, *a, (a + 3)[i] and &a[i]; None when it is unclear."""
    match e:
        case Name(text):
            return text
        case Index(base) | Member(base) | Cast(_, base):
            return base_name(base)
        case Unary("*" | "&", operand):
            return base_name(operand)
        case Binary("+" | "-", left):
            return base_name(left)
    return None


def names_assigned(node: Any) -> frozenset[str]:
    """The variables that get another value after their declaration: assigned, stepped by a loop that does not declare
    them, with their address taken, or named in opaque text. Writing through a pointer or into an array is not meant."""
    if isinstance(node, tuple):
        return frozenset().union(*map(names_assigned, node))
    return _assigned_in(node)


@remembered
def _assigned_in(node: Any) -> frozenset[str]:
    found: set[str] = set()
    inner = [s for name in BLOCKS.get(type(node), ()) for s in getattr(node, name)]
    for part in (node, *nodes(exprs_of(node))) if inner else nodes(node):
        match part:
            case Assign(target=Index() | Unary() | Member(Index() | Unary())):
                pass
            case Assign(target=target):
                found.add(base_name(target) or "")
            case For(type=None, var=name) | Unary("&", Name(name) | Member(Name(name), arrow=False)):
                found.add(name)
            case OpaqueExpr(text) | OpaqueStmt(text):
                found |= opaque_names(text)
    return frozenset(found.union(*map(_assigned_in, inner)))


def names_changed(stmts: Iterable[Stmt]) -> frozenset[str]:
    """The variables and arrays that statements assign to after their declaration, or step in a loop. A write through a
    pointer counts for the pointer's name; what calls do with addresses is left aside."""
    found: set[str] = set()
    for s in walk_stmts(stmts):
        match s:
            case Assign(target):
                found |= {base_name(target) or "?"} if base_name(target) else names_in(target)
            case For(var=name):
                found.add(name)
            case OpaqueStmt(text):
                found |= opaque_names(text)
    return frozenset(found)


def names_written(stmts: Block) -> frozenset[str]:
    """What :func:`names_changed` gives, every variable declared with a value, and what expressions may change."""
    found = set(names_changed(stmts))
    for s in walk_stmts(stmts):
        if isinstance(s, Declare) and s.init is not None:
            found.add(s.name)
        for e in exprs_of(s):
            found |= written_by(e)
    return frozenset(found)


def written_by(e: Expr) -> frozenset[str]:
    """Names that evaluating an expression may change: opaque parts, and what has its address handed to a call."""
    found: set[str] = set()
    for x in walk_expr(e):
        match x:
            case OpaqueExpr(text) if re.search(r"(?<![=!<>])=(?!=)|\+\+|--|\[|\(", text):
                found |= opaque_names(text)
            case Call(_, args):
                for argument in args:
                    if isinstance(argument, Unary) and argument.op == "&":
                        found |= {name} if (name := base_name(argument)) else names_in(argument)
    return frozenset(found)


def fresh(name: str, taken: Iterable[str]) -> str:
    """``name``, or ``name`` with the first number that makes it differ from every taken name."""
    used = frozenset(taken)
    return next(n for n in (name, *(f"{name}{i}" for i in range(2, len(used) + 3))) if n not in used)


def kernel_names(kernel: KernelForm) -> frozenset[str]:
    """Every name in use in a kernel: parameters, template parameters, locals and whatever it mentions."""
    template = opaque_names(kernel.template or "")
    return names_mentioned(kernel.body) | {p.name for p in kernel.params} | template


def taken_names(kernel: KernelForm) -> frozenset[str]:
    """Every name that a new one in a kernel must differ from: those in use, and those that macros use."""
    return kernel_names(kernel) | kernel.macro_words


# ---------------------------------------------------------------- questions


def _called(stmts: Iterable[Stmt]) -> Iterator[str]:
    for s in walk_stmts(stmts):
        if isinstance(s, OpaqueStmt):
            yield s.text
        for e in exprs_of(s):
            for x in walk_expr(e):
                match x:
                    case Call(Name(text), _) | Call(Member(_, text), _) | OpaqueExpr(text):
                        yield text


def contains_barrier(stmts: Iterable[Stmt]) -> bool:
    """Whether a block- or warp-wide synchronisation may happen in the statements."""
    return any(_BARRIERS.search(text) for text in _called(stmts))


def contains_warp_wide(stmts: Iterable[Stmt]) -> bool:
    """Whether the statements hold shuffles, votes or other operations on several lanes."""
    return any(_WARP_WIDE.search(text) for text in _called(stmts))


# An initialiser of numbers alone: ``{0}``, ``{1.5f, -2}``.
_NUMBERS = re.compile(r"\{(?:[\s,{}+-]|[.\d][\w.]*(?:(?<=[eE])[+-]\d+)?)*\}")


def contains_opaque(stmts: Iterable[Stmt]) -> bool:
    """Whether any statement or expression is opaque (empty extents ``[]`` and numbers in braces excepted)."""
    return any(isinstance(s, OpaqueStmt) for s in walk_stmts(stmts)) or any(
        isinstance(e, OpaqueExpr) and e.text and not _NUMBERS.fullmatch(e.text) for e in walk_exprs(stmts)
    )


def contains_return(stmts: Iterable[Stmt]) -> bool:
    """Whether the statements may leave the function (opaque text may)."""
    return any(
        isinstance(s, Return) or (isinstance(s, OpaqueStmt) and re.search(r"\b(return|goto)\b", s.text) is not None)
        for s in walk_stmts(stmts)
    )


def jumps(stmts: Iterable[Stmt]) -> bool:
    """Whether a ``break`` or ``continue`` in the statements acts on the loop around them."""
    return any(True for _ in _own_jumps(stmts))


def breaks(stmts: Iterable[Stmt]) -> bool:
    """The same of a ``break``: whether it ends the loop around the statements."""
    return any(s.keyword == "break" for s in _own_jumps(stmts))


def _own_jumps(stmts: Iterable[Stmt]) -> Iterator[Jump]:
    for s in stmts:
        if isinstance(s, Jump):
            yield s
        elif not isinstance(s, For | While):
            for block in blocks_of(s):
                yield from _own_jumps(block)


def loops(stmts: Iterable[Stmt]) -> list[For]:
    """The counted loops, outermost first, in the order of the text."""
    return [s for s in walk_stmts(stmts) if isinstance(s, For)]


def loop_regions(kernel: KernelForm) -> dict[str, For]:
    """The counted loops by stable region name: ``loop:j``, the second with that variable ``loop:j#2``."""
    found: dict[str, For] = {}
    for loop in loops(kernel.body):
        name = f"loop:{loop.var}"
        count = sum(1 for n in found if n == name or n.startswith(f"{name}#"))
        found[name if count == 0 else f"{name}#{count + 1}"] = loop
    return found


def integer(e: Expr) -> int | None:
    """The value of an integer literal (``32``, ``0x1fu``, ``-1``); None for anything else."""
    match e:
        case Unary("-", operand):
            value = integer(operand)
            return None if value is None else -value
        case Literal(text) if re.fullmatch(r"-?(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*", text):
            digits = re.sub(r"[uUlLzZ]+$", "", text).replace("'", "")
            if re.fullmatch(r"-?0[0-7]+", digits):
                return int(digits, 8)
            return int(digits, 0)
    return None


def is_zero(e: Expr) -> bool:
    """Whether the expression is a literal zero of any type (``0``, ``0u``, ``0.0f``)."""
    return isinstance(e, Literal) and re.fullmatch(r"[-+]?0*\.?0*([eE][-+]?\d+)?[fFuUlL]*", e.text) is not None


def without_casts(e: Expr) -> Expr:
    """The expression without the casts around it."""
    while isinstance(e, Cast):
        e = e.operand
    return e


def without_comments(body: Iterable[Stmt]) -> Block:
    """The statements with comments dropped at this level, and braces that hold no declarations opened."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Scope) and not any(isinstance(inner, Declare) for inner in s.body):
            out += without_comments(s.body)
        elif not isinstance(s, Comment):
            out.append(s)
    return tuple(out)
