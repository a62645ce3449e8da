"""Atomic operations by which blocks may change what others write: all but those on a block's own shared memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fsr.analysis.accesses import pointed
from fsr.analysis.calls import is_atomic
from fsr.analysis.memory_groups import memory_groups
from fsr.source.form import Call, Cast, Declare, Expr, Index, KernelForm, Member, Name, OpaqueExpr, OpaqueStmt, Unary
from fsr.source.parse import parse_kernels
from fsr.source.tokens import tokenize
from fsr.source.types import aliases
from fsr.source.walk import names_assigned, names_in, nodes, opaque_names, walk_expr, walk_exprs, walk_stmts

_IN_MACRO = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*\batomic", re.MULTILINE)
_STARTS = "atomic"
_QUALIFIERS = re.compile(r"\b(?:const|__restrict__|__restrict|restrict)\b")


@dataclass(frozen=True, slots=True)
class OuterAtomic:
    """One that may reach other blocks' memory. ``array``: what it goes through, '' where that is not told."""

    name: str
    array: str


@lru_cache(maxsize=128)
def outer_atomic(source: str) -> OuterAtomic | None:
    """The first atomic operation of a text that is not shown to stay in its block's shared memory; None where each is.
    Shown of those alone that stand in a kernel as calls; the others are in functions, macros or classes."""
    written = [t.text for t in tokenize(source) if t.kind == "name" and t.text.startswith(_STARTS)]
    kernels, seen = parse_kernels(source), 0
    for kernel in kernels.values():
        memory = _Memory(kernel, aliases(source))
        for call in (e for e in walk_exprs(kernel.body) if isinstance(e, Call) and is_atomic(e)):
            seen += 1
            if not call.args or not memory.is_shared(call.args[0]):
                return OuterAtomic(str(getattr(call.callee, "text", _STARTS)), memory.named(call))
    if seen != len(written) or _IN_MACRO.search(source):
        return OuterAtomic(written[0] if written else _STARTS, "")
    return None


class _Memory:
    """Which memory the addresses of a kernel lead to, as far as its own declarations tell."""

    def __init__(self, kernel: KernelForm, types: Mapping[str, str]) -> None:
        self.kernel, self._types = kernel, types
        self._declared: dict[str, list[Declare]] = {}
        for s in walk_stmts(kernel.body):
            if isinstance(s, Declare):
                self._declared.setdefault(s.name, []).append(s)

    @cached_property
    def _groups(self) -> Mapping[str, frozenset[str]]:
        plain = frozenset(name for _, name in self.kernel.template_parameters)
        return memory_groups(self.kernel, self._types, plain)

    @cached_property
    def _unsteady(self) -> frozenset[str]:
        """Names that something may set after their declaration, functions that take them as they are included."""
        calls = (e for e in walk_exprs(self.kernel.body) if isinstance(e, Call) and not is_atomic(e))
        handed = {a.text for call in calls for a in call.args if isinstance(a, Name)}
        return names_assigned(self.kernel.body) | handed

    @cached_property
    def _hidden(self) -> frozenset[str]:
        """Names in verbatim text, which may declare others of the name."""
        texts = (n.text for n in nodes(self.kernel.body) if isinstance(n, OpaqueExpr | OpaqueStmt))
        return frozenset[str]().union(*map(opaque_names, texts))

    def is_shared(self, address: Expr) -> bool:
        """Whether an address is one of the block's shared memory, whatever the data."""
        if isinstance(scalar := _target(address), Unary) and scalar.op == "&" and isinstance(scalar.operand, Name):
            return self._is_scalar(scalar.operand.text)
        array, depth = _element(_target(address))
        if depth > 1:
            return self._is_array(array) and all(len(s.dims) >= depth for s in self._own(array))
        place = pointed(_target(address), frozenset(self._groups))
        if place is None:
            return False
        group = self._groups[place[0]]
        arrays = {name for name in group if self._is_array(name)}
        return bool(arrays) and all(self._leads_to(name, group) for name in group - arrays)

    def named(self, call: Call) -> str:
        """The array or pointer that an operation goes through, '' where that does not show."""
        place = pointed(_target(call.args[0]), frozenset(self._groups)) if call.args else None
        return place[0] if place else ""

    def _own(self, name: str) -> list[Declare]:
        """The declarations of a name that means nothing else in the kernel."""
        foreign = {p.name for p in self.kernel.params} | self.kernel.macro_words
        return [] if name in foreign else self._declared.get(name, [])

    def _is_scalar(self, name: str) -> bool:
        own = [] if name in self._hidden else self._own(name)
        return bool(own) and all("__shared__" in s.qualifiers and not {"*", "&"} & set(s.type) for s in own)

    def _is_array(self, name: str) -> bool:
        return self._is_scalar(name) and all(s.dims for s in self._own(name))

    def _leads_to(self, name: str, group: frozenset[str]) -> bool:
        """Whether a name is a pointer that is made once, from those of the group alone."""
        own = self._own(name)
        if len(own) != 1 or own[0].init is None or own[0].dims or name in self._unsteady:
            return False
        casts = (e for e in walk_expr(own[0].init) if isinstance(e, Cast) and "*" in e.type)
        return _QUALIFIERS.sub("", own[0].type).rstrip().endswith("*") and all(_base(e.operand) in group for e in casts)


def _target(address: Expr) -> Expr:
    """An address without casts, and that of the element for one of its members."""
    match address:
        case Cast(type_, operand) if "*" in type_:
            return _target(operand)
        case Unary("&", Member(base, _, False)):
            return _target(Unary("&", base))
    return address


def _element(address: Expr) -> tuple[str, int]:
    """The array, and how many indices there are, of ``&a[i][j]``."""
    if not isinstance(address, Unary) or address.op != "&":
        return "", 0
    depth, e = 0, address.operand
    while isinstance(e, Index):
        depth, e = depth + 1, e.base
    return (e.text if isinstance(e, Name) else "", depth)


def _base(e: Expr) -> str:
    """The array that an address is made from; '' where that does not show at once."""
    place = pointed(_target(e), names_in(e))
    return place[0] if place else ""
