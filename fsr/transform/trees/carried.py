"""Variables that go along with a thread's own element of a shared array: ``acc += s[t + w]; s[t] = acc;``.

Whenever such a variable changes it is stored, so that it and the element are the same; with the element in its place,
what is left is a fold of elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fsr.analysis.functions import Functions
from fsr.analysis.index_values import Values
from fsr.analysis.types import bare
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Name,
    OpaqueExpr,
    Stmt,
    Unary,
    While,
)
from fsr.source.mapping import map_stmts, substitute, with_blocks
from fsr.source.parse import parse_kernels
from fsr.source.walk import (
    BARRIER,
    Block,
    blocks_of,
    contains_opaque,
    exprs_of,
    names_assigned,
    names_in,
    names_mentioned,
    walk_expr,
    walk_stmts,
)  # fmt: skip
from fsr.transform.trees.arrays import Shared
from fsr.transform.trees.threads import Threads

_VARIABLES = 8  # at most
_CHAINED = re.compile(r"(\w+)\s*[-+*/&|^]?=(?!=).*", re.DOTALL)
_CHAINED_TEXT = re.compile(r"(\b\w+\[[^\[\];=]+\])\s*=\s*(\w+)\s*([-+*/&|^]?=(?!=)[^;{}]*);")


def with_elements(kernel: KernelForm, threads: Threads, found: dict[str, Shared]) -> KernelForm:
    """The kernel with elements in such variables' place. ``threads``: of the kernel as it was."""
    for _ in range(_VARIABLES):
        plain = Threads.of(replace(threads.target, kernel=kernel))
        changed = kernel.body if plain is None else _changed(kernel.body, plain, found, looped=False)
        if changed == kernel.body:
            break
        kernel = replace(kernel, body=changed)
    return kernel


def unchained(kernel: KernelForm) -> KernelForm:
    """The kernel with ``s[t] = acc = value`` as two statements."""
    return replace(kernel, body=map_stmts(kernel.body, _unchained))


def unchained_text(source: str) -> str:
    """The same for a source's text, to be read alone."""
    return _CHAINED_TEXT.sub(r"{ \2 \3; \1 = \2; }", source)


def _unchained(s: Stmt) -> Stmt | tuple[Stmt, ...]:
    match s:
        case Assign(Index(Name(), place), "=", OpaqueExpr(text)) if made := _CHAINED.fullmatch(text):
            first = parse_kernels(f"__global__ void f() {{ {text}; }}")["f"].body
            match first:
                case (Assign(Name(name)) as inner,) if name == made[1] and name not in names_in(place):
                    return (replace(inner, span=None), replace(s, value=Name(name), span=None))
    return s


def _changed(block: Block, threads: Threads, found: dict[str, Shared], *, looped: bool) -> Block:
    for n, s in enumerate(block):
        carried = _carried_by(s, block[:n], threads, found)
        rest = None if carried is None else _behind(block[n + 1 :], carried, threads, found, looped=looped)
        if rest is not None:
            return (*block[:n], *_begun(s, rest), *rest)

    def inside(s: Stmt) -> Stmt:
        loops = looped or isinstance(s, For | While)
        return with_blocks(s, lambda b: _changed(b, threads, found, looped=loops)) if blocks_of(s) else s

    return tuple(map(inside, block))


def _begun(s: Stmt, rest: Block) -> Block:
    """The statement from which on a variable is an element: one that reads it is needed no more."""
    if not isinstance(s, Declare):
        return (s,)
    return (replace(s, init=None, span=None),) if s.name in names_mentioned(rest) else ()


@dataclass(frozen=True)
class _Carried:
    """``name`` is ``element`` of ``array`` from some statement on."""

    name: str
    array: str
    element: Index

    def is_change(self, s: Stmt) -> bool:
        """Whether a statement gives the variable a new value."""
        return isinstance(s, Assign) and s.target == Name(self.name)

    def is_store(self, s: Stmt) -> bool:
        """Whether a statement stores the variable."""
        return isinstance(s, Assign) and s.op == "=" and s.target == self.element and s.value == Name(self.name)

    def sets(self, s: Stmt) -> bool:
        """Whether a statement sets an element of the array."""
        return isinstance(s, Assign) and isinstance(s.target, Index) and s.target.base == Name(self.array)

    def store_of(self, block: Block, at: int) -> int | None:
        """The store of a change: other variables may be set before it."""
        for n in range(at + 1, len(block)):
            if self.is_store(block[n]):
                return n
            if not isinstance(block[n], Assign) or names_mentioned((block[n],)) & {self.name, self.array}:
                break
        return None

    def holds(self, block: Block) -> bool:
        """Whether it stays so: each change is stored at once, and nothing else is stored or declared anew."""
        stores = [self.store_of(block, n) for n, s in enumerate(block) if self.is_change(s)]
        for n, s in enumerate(block):
            own = s.name if isinstance(s, Declare) else s.var if isinstance(s, For) else ""
            if own == self.name or (self.sets(s) and n not in stores) or not all(map(self.holds, blocks_of(s))):
                return False
        return None not in stores

    def written(self, block: Block) -> Iterator[Stmt]:
        """The statements with the element in the variable's place."""
        values = {self.name: self.element}
        for s in block:
            if isinstance(s, Assign) and self.is_change(s):
                value = s.value if s.op == "=" else Binary(s.op[:-1], Name(self.name), s.value)
                yield Assign(self.element, "=", substitute(value, values))
            elif not self.is_store(s):
                yield substitute(with_blocks(s, lambda b: tuple(self.written(b))) if blocks_of(s) else s, values)


def _carried_by(s: Stmt, before: Block, threads: Threads, found: dict[str, Shared]) -> _Carried | None:
    """What a statement stores or reads, if the variable is declared in the same list, and each thread has an element
    of its own for it, the same one all the time."""
    match s:
        case Assign(Index(Name(array), place) as element, "=", Name(name)) if array in found:
            types = [d.type for d in before if isinstance(d, Declare) and d.name == name]
        case Declare(type_, name, Index(Name(array), place) as element, ()) if array in found:
            types = [type_]
        case _:
            return None
    values = threads.values(place, {})
    if (
        list(map(bare, types)) == [bare(found[array].declared.type)]
        and name in threads.variables
        and not names_in(place) & names_assigned(threads.target.kernel.body)
        and values is not None
        and np.unique(values).size == threads.count
        and _elements_alone(threads.target.kernel.body, found[array].root, found)
    ):
        return _Carried(name, array, element)
    return None


def _behind(
    block: Block, carried: _Carried, threads: Threads, found: dict[str, Shared], *, looped: bool
) -> Block | None:
    """The statements behind the first store; None where they cannot do with the element."""
    end = next((n for n in range(len(block), 0, -1) if carried.holds(block[:n])), 0)
    part, rest = block[:end], block[end:]
    if not any(map(carried.is_change, walk_stmts(part))) or not _is_plain(part, carried, found):
        return None
    if _leads_elsewhere(block, carried.name, threads):
        return None
    # Others may set the element behind, when it is read no more: in the next turn, or below.
    sets = any(map(carried.sets, walk_stmts(rest))) or not _is_plain(rest, carried, found)
    if (looped and block[-1] != BARRIER) or (sets and part[-1] != BARRIER):
        return None
    last = (
        _going_on(rest, carried, threads) if not sets else rest if carried.name not in names_mentioned(rest) else None
    )
    return None if last is None else (*carried.written(part), *last)


def _leads_elsewhere(block: Block, name: str, threads: Threads) -> bool:
    """Whether a variable may be changed by another name: a pointer, a reference, or a function's parameter."""
    known = threads.target.functions
    for s in walk_stmts(block):
        exprs = [e for top in exprs_of(s) for e in walk_expr(top)]
        if isinstance(s, Declare) and "&" in s.type and Name(name) in exprs:
            return True
        for e in exprs:
            if (isinstance(e, Call) and Name(name) in e.args and not _takes_values(e, known)) or e == Unary(
                "&", Name(name)
            ):
                return True
    return False


def _takes_values(call: Call, known: Functions) -> bool:
    """Whether a function is CUDA's own, or one that only computes."""
    return isinstance(call.callee, Name) and (
        call.callee.text not in known.own or known.only_computes(call.callee.text)
    )


def _going_on(rest: Block, carried: _Carried, threads: Threads) -> Block | None:
    """Statements with the variable set from the element where the first ``if`` begins that goes on with it, if no
    other threads than those of it do."""
    users = [n for n, s in enumerate(rest) if carried.name in names_mentioned((s,))]
    if not users:
        return rest
    masks: list[Values] = []
    for n in users:
        match rest[n]:
            case If(test, _, ()) if (found := threads.values(test, {})) is not None:
                masks.append(found != 0)
            case _:
                return None
    if any(np.any(m & ~masks[0]) for m in masks):
        return None
    first = rest[users[0]]
    assert isinstance(first, If)
    begin = Assign(Name(carried.name), "=", carried.element)
    return (*rest[: users[0]], replace(first, then=(begin, *first.then)), *rest[users[0] + 1 :])


def _is_plain(block: Block, carried: _Carried, found: dict[str, Shared]) -> bool:
    """Whether only elements of the array are meant, by its own name."""
    root = found[carried.array].root
    others = {n for n, s in found.items() if s.root == root and n != carried.array}
    return not contains_opaque(block) and not names_mentioned(block) & others and _elements_alone(block, root, found)


def _elements_alone(block: Block, root: str, found: dict[str, Shared]) -> bool:
    """Whether the array's names are used for elements alone, but where they are declared."""
    names = {n for n, s in found.items() if s.root == root}
    stmts = [s for s in walk_stmts(block) if not (isinstance(s, Declare) and s.name in found)]
    exprs: list[Expr] = [e for s in stmts for top in exprs_of(s) for e in walk_expr(top)]
    named = sum(isinstance(e, Name) and e.text in names for e in exprs)
    return named == sum(isinstance(e, Index) and isinstance(e.base, Name) and e.base.text in names for e in exprs)
