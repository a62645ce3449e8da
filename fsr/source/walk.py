"""Walking and transforming the loop-nest form.

Walkers go in the order of the text, parents before children. Transformers rebuild bottom-up and return equal
values where nothing changed. Opaque nodes are leaves; the names in their text count as read *and* written.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
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
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip

Block = tuple[Stmt, ...]

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_BARRIERS = re.compile(r"__sync(threads|warp)|__barrier_sync|\bbar\.|\b(sync|arrive_and_wait|barrier_\w+|wait)\b")
_WARP_WIDE = re.compile(
    r"__(shfl|ballot|any|all|match|activemask|reduce|syncwarp|uni)\w*|\b(shfl|shfl_\w+|ballot|reduce)\b|coalesced_threads"
)

# ---------------------------------------------------------------- children


def subexprs(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match e:
        case Unary(_, operand) | Cast(_, operand) | Member(operand):
            return (operand,)
        case Binary(_, left, right) | Index(left, right):
            return left, right
        case Ternary(test, yes, no):
            return test, yes, no
        case Call(callee, args):
            return callee, *args
    return ()


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


def blocks_of(s: Stmt) -> tuple[Block, ...]:
    """The nested statement lists of a statement."""
    match s:
        case If():
            return s.then, s.orelse
        case For() | While() | Scope():
            return (s.body,)
    return ()


# ---------------------------------------------------------------- walking


def walk_expr(e: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    yield e
    for part in subexprs(e):
        yield from walk_expr(part)


def walk_stmts(stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, nested ones included."""
    for s in stmts:
        yield s
        for block in blocks_of(s):
            yield from walk_stmts(block)


def walk_exprs(stmts: Iterable[Stmt]) -> Iterator[Expr]:
    """Every expression and subexpression of every statement, nested ones included."""
    for s in walk_stmts(stmts):
        for e in exprs_of(s):
            yield from walk_expr(e)


# ---------------------------------------------------------------- transforming


def map_expr(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with ``change`` applied to every subexpression, innermost first."""
    match e:
        case Unary(op, operand):
            e = Unary(op, map_expr(operand, change))
        case Cast(type_, operand, style):
            e = Cast(type_, map_expr(operand, change), style)
        case Member(base, name, arrow):
            e = Member(map_expr(base, change), name, arrow)
        case Binary(op, left, right):
            e = Binary(op, map_expr(left, change), map_expr(right, change))
        case Index(base, index):
            e = Index(map_expr(base, change), map_expr(index, change))
        case Ternary(test, yes, no):
            e = Ternary(map_expr(test, change), map_expr(yes, change), map_expr(no, change))
        case Call(callee, args, templates):
            e = Call(map_expr(callee, change), tuple(map_expr(a, change) for a in args), templates)
    return change(e)


def map_stmts(
    stmts: Block, change: Callable[[Stmt], Stmt | Iterable[Stmt]], expr: Callable[[Expr], Expr] | None = None
) -> Block:
    """The statements with ``change`` applied to each, innermost first; it may return several, or none.

    ``expr``, when given, is first applied to every expression by :func:`map_expr`.
    """
    found: list[Stmt] = []
    for s in stmts:
        if expr is not None:
            s = map_own_exprs(s, expr)
        match s:
            case If():
                s = dataclasses.replace(
                    s, then=map_stmts(s.then, change, expr), orelse=map_stmts(s.orelse, change, expr)
                )
            case For() | While() | Scope():
                s = dataclasses.replace(s, body=map_stmts(s.body, change, expr))
        new = change(s)
        found.extend([new] if isinstance(new, Stmt) else new)
    return tuple(found)


def map_own_exprs(s: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """The statement with :func:`map_expr` applied to the expressions directly in it."""

    def go(e: Expr) -> Expr:
        return map_expr(e, change)

    match s:
        case Declare():
            return dataclasses.replace(s, init=None if s.init is None else go(s.init), dims=tuple(map(go, s.dims)))
        case Assign():
            return dataclasses.replace(s, target=go(s.target), value=go(s.value))
        case ExprStmt():
            return dataclasses.replace(s, expr=go(s.expr))
        case If() | While():
            return dataclasses.replace(s, test=go(s.test))
        case For():
            return dataclasses.replace(s, start=go(s.start), bound=go(s.bound), step=go(s.step))
        case Return():
            return dataclasses.replace(s, value=None if s.value is None else go(s.value))
    return s


def map_exprs(stmts: Block, change: Callable[[Expr], Expr]) -> Block:
    """The statements with ``change`` applied to every expression, innermost first."""
    return map_stmts(stmts, lambda s: s, change)


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with names replaced. Names inside opaque text are not (see :func:`names_in`)."""
    return map_expr(e, lambda x: values.get(x.text, x) if isinstance(x, Name) else x)


def substitute_stmts(stmts: Block, values: Mapping[str, Expr]) -> Block:
    """Like :func:`substitute` for statements; declared names and loop variables keep their spelling, unless they
    map to a Name (a renaming)."""

    def rename(s: Stmt) -> Stmt:
        match s:
            case Declare(name=old) if isinstance(new := values.get(old), Name):
                return dataclasses.replace(s, name=new.text)
            case For(var=old) if isinstance(new := values.get(old), Name):
                return dataclasses.replace(s, var=new.text)
        return s

    return map_stmts(stmts, rename, lambda x: values.get(x.text, x) if isinstance(x, Name) else x)


def replace_stmt(stmts: Block, old: Stmt, new: Iterable[Stmt]) -> Block:
    """The statements with the very statement ``old`` (by identity, at any depth) replaced by ``new``."""
    found: list[Stmt] = []
    replacement = tuple(new)
    for s in stmts:
        if s is old:
            found.extend(replacement)
            continue
        match s:
            case If():
                then, orelse = replace_stmt(s.then, old, replacement), replace_stmt(s.orelse, old, replacement)
                s = s if (then, orelse) == (s.then, s.orelse) else dataclasses.replace(s, then=then, orelse=orelse)
            case For() | While() | Scope():
                body = replace_stmt(s.body, old, replacement)
                s = s if body == s.body else dataclasses.replace(s, body=body)
        found.append(s)
    return tuple(found)


# ---------------------------------------------------------------- names


def opaque_names(text: str) -> frozenset[str]:
    """The identifiers in verbatim text (member names after a dot excepted)."""
    return frozenset(_WORD.findall(re.sub(r'"(?:\\.|[^"\\])*"', '""', text)))


def names_in(e: Expr) -> frozenset[str]:
    """Every name an expression mentions: read, called or written, opaque text included."""
    found: set[str] = set()
    for x in walk_expr(e):
        if isinstance(x, Name):
            found.add(x.text)
        elif isinstance(x, OpaqueExpr):
            found |= opaque_names(x.text)
    return frozenset(found)


def names_mentioned(stmts: Iterable[Stmt]) -> frozenset[str]:
    """Every name the statements mention or declare, opaque text and template arguments included."""
    found: set[str] = set()
    for s in walk_stmts(stmts):
        for e in exprs_of(s):
            found |= names_in(e)
        match s:
            case Declare(name=name) | For(var=name):
                found.add(name)
            case OpaqueStmt(text):
                found |= opaque_names(text)
    for e in walk_exprs(stmts):
        if isinstance(e, Call):
            found |= {n for t in e.template_args for n in opaque_names(t)}
    return frozenset(found)


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


def names_written(stmts: Iterable[Stmt]) -> frozenset[str]:
    """Variables and arrays that the statements may change: assigned, declared with a value, stepped by a loop,
    passed by address to a call, or named in opaque text. A write through a pointer counts for the pointer's name."""
    found: set[str] = set()
    for s in walk_stmts(stmts):
        match s:
            case Assign(target):
                found |= {base_name(target) or "?"} if base_name(target) else names_in(target)
            case Declare(name=name) if s.init is not None:
                found.add(name)
            case For(var=name):
                found.add(name)
            case OpaqueStmt(text):
                found |= opaque_names(text)
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


def names_read(stmts: Iterable[Stmt]) -> frozenset[str]:
    """Names whose value the statements use (callees excepted). A plain ``x = e`` does not read x; ``x += e``,
    ``x[i] = e`` and ``&x`` do (the pointer, the index)."""
    found: set[str] = set()
    for s in walk_stmts(stmts):
        match s:
            case Assign(Name(), "=", value):
                found |= _values(value)
            case OpaqueStmt(text):
                found |= opaque_names(text)
            case _:
                for e in exprs_of(s):
                    found |= _values(e)
        if isinstance(s, For):
            found.add(s.var)
    return frozenset(found)


def _values(e: Expr) -> frozenset[str]:
    match e:
        case Call(Name(), args):
            return frozenset(n for a in args for n in _values(a))
        case Name() | OpaqueExpr():
            return names_in(e)
    return frozenset(n for part in subexprs(e) for n in _values(part))


def fresh(name: str, taken: Iterable[str]) -> str:
    """``name``, or ``name`` with the first number that makes it differ from every taken name."""
    used = frozenset(taken)
    return next(n for n in (name, *(f"{name}{i}" for i in range(2, len(used) + 3))) if n not in used)


def kernel_names(kernel: KernelForm) -> frozenset[str]:
    """Every name in use in a kernel: parameters, template parameters, locals and whatever it mentions."""
    template = opaque_names(kernel.template or "")
    return names_mentioned(kernel.body) | {p.name for p in kernel.params} | template


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


def contains_opaque(stmts: Iterable[Stmt]) -> bool:
    """Whether any statement or expression is opaque (empty extents ``[]`` excepted)."""
    return any(isinstance(s, OpaqueStmt) for s in walk_stmts(stmts)) or any(
        isinstance(e, OpaqueExpr) and e.text for e in walk_exprs(stmts)
    )


def contains_return(stmts: Iterable[Stmt]) -> bool:
    """Whether the statements may leave the function (opaque text may)."""
    return any(
        isinstance(s, Return) or (isinstance(s, OpaqueStmt) and re.search(r"\b(return|goto)\b", s.text) is not None)
        for s in walk_stmts(stmts)
    )


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
