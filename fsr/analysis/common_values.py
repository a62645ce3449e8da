"""Which values threads have in common that differ in the number of their block along one axis alone.

Such threads stand a block's width apart. What depends neither on that number nor on memory that the kernel writes is
the same in all of them, wherever they run the same statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fsr.analysis.accesses import accesses, declared_arrays
from fsr.analysis.calls import is_load
from fsr.analysis.definitions import stored
from fsr.analysis.functions import Functions
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import (
    Block,
    base_name,
    blocks_of,
    exprs_of,
    jumps,
    names_in,
    subexprs,
    walk_expr,
    walk_exprs,
    walk_stmts,
)

_MEMORY = "?"  # any: it is not told which


class _Names:
    """The variables of a kernel: ``own``, of the thread, parameters among them; ``arrays``, those of them that are;
    ``roots``: the pointer parameters behind each pointer."""

    def __init__(self, kernel: KernelForm) -> None:
        stmts = list(walk_stmts(kernel.body))
        self.roots = {p.name: frozenset([p.name]) for p in kernel.params if p.is_pointer}
        declared = [s for s in stmts if isinstance(s, Declare)]
        pointers = [s for s in declared if s.type.rstrip().removesuffix("const").rstrip().endswith("*")]
        self.references = frozenset(s.name for s in declared if s.type.endswith("&"))
        counters = {s.var for s in stmts if isinstance(s, For) and s.type is not None}
        self.own = frozenset({p.name for p in kernel.params} | {s.name for s in declared} | counters)
        self.arrays = declared_arrays(kernel.body) - {s.name for s in pointers}
        held = [(s.name, s.init) for s in pointers if s.init is not None]
        names = {s.name for s in pointers} | set(self.roots)
        assigned = [s for s in stmts if isinstance(s, Assign) and s.op == "="]
        held += [(s.target.text, s.value) for s in assigned if isinstance(s.target, Name) and s.target.text in names]
        self.roots |= {s.name: frozenset() for s in pointers if s.name not in self.roots}
        for _ in range(len(held) + 1):  # what one pointer is made of another may be
            for name, value in held:
                self.roots[name] |= self._behind(value)

    def _behind(self, value: Expr) -> frozenset[str]:
        name = base_name(value)
        if name in self.roots and not isinstance(value, Index):
            return self.roots[name]
        return frozenset() if name in self.arrays else frozenset([_MEMORY])

    def memory(self, name: str | None) -> frozenset[str]:
        """What is reached through a name; nothing through a variable of the thread."""
        if name is None:
            return frozenset([_MEMORY])
        return self.roots.get(name, frozenset() if name in self.own else frozenset([_MEMORY]))


class CommonValues:
    """``apart``: the variables that may differ between the threads. A variable that is declared where a condition lets
    only some of the threads come, and is set there alone, is common to those that come.

    ``types``: names of types, which may be called; ``alias``: whether two pointer parameters may share memory."""

    def __init__(
        self, kernel: KernelForm, axis: str, functions: Functions, types: frozenset[str],
        alias: Callable[[str, str], bool],
    ) -> None:  # fmt: skip
        self._block, self._functions, self._types = Member(Name("blockIdx"), axis), functions, types
        self._names = _Names(kernel)
        written = {root for a in accesses(kernel) if a.writes for root in self._names.memory(a.array)}
        self.apart = frozenset(_handed_on(kernel, self._names))
        changed = {base_name(s.target) for s in walk_stmts(kernel.body) if isinstance(s, Assign)} | self.apart
        for s in walk_stmts(kernel.body):
            if isinstance(s, Declare) and s.name in changed & self._names.references:
                written |= self._names.memory(None if s.init is None else base_name(s.init))
        pointers = {p.name for p in kernel.params if p.is_pointer}
        self._written = written | {p for p in pointers if any(alias(p, w) for w in written & pointers)}
        known = -1
        while known != len(self.apart):
            known = len(self.apart)
            found = set(self.apart)
            self._sweep(kernel.body, 0, {}, found)
            self.apart = frozenset(found)

    def __call__(self, e: Expr) -> bool:
        """Whether threads that evaluate the expression together get the same value, and change nothing by it."""
        return not (names_in(e) & self.apart) and all(self._is_common(x) for x in walk_expr(e))

    def once(self, s: Stmt) -> bool:
        """Whether a statement, and what is in it, is the same for all of the threads and changes no memory."""
        return all(self._is_once(inner) for inner in walk_stmts((s,)))

    def together(self, loop: For | While) -> bool:
        """Whether the threads go through the turns of a loop together."""
        header = all(map(self, exprs_of(loop)))
        return header and not (isinstance(loop, For) and loop.var in self.apart) and not self._leaves(loop.body)

    # ------------------------------------------------------------ expressions

    def _is_common(self, e: Expr) -> bool:
        match e:
            case OpaqueExpr(text):
                return not {"(", "="} & set(text)
            case Member(base, _, True):
                return self._is_unwritten(base)
            case Member() if e == self._block:
                return False
            case Call(callee):
                named = callee.text if isinstance(callee, Name) else ""
                if is_load(e):
                    return len(e.args) == 1 and self._is_unwritten(e.args[0])
                if self._functions.builtin(named) or named in self._types:
                    return True
                return self._functions.only_computes(named) and _MEMORY not in self._written  # it may read a table
            case Index(base) | Unary("*", base):
                return self._is_unwritten(base)
        return True

    def _is_unwritten(self, pointer: Expr) -> bool:
        """Whether nobody writes where a pointer, or an array, leads; what is written of a thread's own array is told by
        its name."""
        name, names = base_name(pointer), self._names
        if name in names.arrays:
            return True
        if name is None or _MEMORY in self._written or (name in names.own and name not in names.roots):
            return False
        return not names.roots.get(name, frozenset()) & (self._written | {_MEMORY})

    # ------------------------------------------------------------ statements

    def _is_once(self, s: Stmt) -> bool:
        match s:
            case Assign(target, _, value):
                held = stored(target, frozenset(self._names.roots))
                own = bool(held) and held <= self._names.own - self._names.references - self.apart
                return own and self(target) and self(value)
            case Declare(name=name):
                return name not in self.apart and all(map(self, exprs_of(s)))
            case For() | While():
                return self.together(s)
        return all(map(self, exprs_of(s)))

    def _sweep(self, stmts: Block, depth: int, outer: Mapping[str, int], found: set[str]) -> None:
        """Adds the variables that statements set apart which stand under ``depth`` conditions of single threads;
        ``outer``: how many of these stand around each variable's declaration."""
        depths = dict(outer)
        for s in stmts:
            inner = depth
            match s:
                case Declare(name=name, init=init):
                    depths[name] = depth
                    found |= {name} if init is not None and not self(init) else set()
                case Assign(target, _, value):
                    for name in stored(target, frozenset(self._names.roots)):
                        if depth > depths.get(name, 0) or not self(value) or not self(target):
                            found.add(name)
                case For(type=type_, var=var):
                    inner += not self.together(s)
                    if type_ is not None:
                        depths[var] = inner
                    if inner > depths.get(var, 0) or not all(map(self, exprs_of(s))):
                        found.add(var)
                case While():
                    inner += not self.together(s)
                case If(test):
                    inner += not self(test)
            for block in blocks_of(s):
                self._sweep(block, inner, depths, found)

    def _leaves(self, body: Block) -> bool:
        """Whether single threads may leave a turn of a loop, or the loop, before others."""
        for s in body:
            if isinstance(s, If) and not self(s.test) and any(map(jumps, blocks_of(s))):
                return True
            if not isinstance(s, For | While) and any(self._leaves(block) for block in blocks_of(s)):
                return True
        return False


def _handed_on(kernel: KernelForm, names: _Names) -> Iterator[str]:
    """Variables of the thread that something else than their name may lead to: their address is taken, a reference is
    bound to them, or a function is given them to change."""
    for s in walk_stmts(kernel.body):
        for e in exprs_of(s):
            yield from {e.text} & names.arrays if isinstance(e, Name) else ()
        if isinstance(s, Declare) and s.type.endswith("&") and s.init is not None:
            yield from stored(s.init, frozenset(names.roots)) & names.own
    for e in walk_exprs(kernel.body):
        parts = (e.index,) if isinstance(e, Index) else subexprs(e)
        yield from (part.text for part in parts if isinstance(part, Name) and part.text in names.arrays)
        match e:
            case Unary("&", operand):
                yield from stored(operand, frozenset(names.roots)) & names.own
            case Call(Name(callee), args):
                for n, argument in enumerate(args):
                    if f"{callee.split('<')[0].strip()}({n}" in kernel.by_reference:
                        yield from stored(argument, frozenset(names.roots)) & names.own
