"""Atomics of a kernel's elements that a block can gather first: all to one address, or scattered over few bins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fsr.analysis.calls import ATOMICS
from fsr.analysis.operators import BY_ATOMIC, LIMITS, identity
from fsr.contract.model import Contract
from fsr.source.form import Binary, Call, Cast, Declare, Expr, ExprStmt, Index, Literal, Name, Stmt, Unary
from fsr.source.walk import integer, names_in, walk_expr, walk_stmts, without_casts
from fsr.transform.atomics.element_kernel import ElementKernel
from fsr.transform.sizes import largest

ADDED = frozenset([*LIMITS, "float", "double"])


@dataclass(frozen=True, slots=True)
class Target:
    """Atomics of one operation on one buffer: ``pointer[index]``; ``operation`` is Add, Sub, Max, Min, And, Or or
    Xor, ``type`` the element's type. ``fixed``: every one goes to the same address; ``counts``: all add whole numbers
    as they stand, which a block gathers as such, whatever the type."""

    root: str
    pointer: str
    index: Expr
    operation: str
    type: str
    fixed: bool
    counts: bool = False

    @property
    def bin_type(self) -> str:
        """What a block gathers scattered values in."""
        return "unsigned" if self.counts else self.type

    @property
    def bin_bytes(self) -> int:
        """Of one such value."""
        return 8 if self.bin_type in ("double", "long long", "unsigned long long") else 4

    @property
    def nothing(self) -> str:
        """The value of a bin to which nothing was added, as a literal."""
        return "0" if self.counts else self.identity

    @property
    def fold(self) -> str:
        """The operator that gathers values, as in fsr.transform.collectives."""
        return BY_ATOMIC[self.gathered]

    @property
    def gathered(self) -> str:
        """The atomic operation that adds what was gathered."""
        return f"atomic{self.operation}"

    @property
    def identity(self) -> str:
        """The value that changes nothing, as a literal of the type."""
        return identity(self.fold, self.type)

    def binned(self, value: Expr) -> Expr:
        """What is added, as a bin takes it."""
        return Cast(self.bin_type, value, "static_cast") if self.counts and not integer(value) else value

    def ungathered(self, total: Expr) -> Expr:
        """What a bin holds, as the atomic takes it."""
        return Cast(self.type, total, "static_cast") if self.counts else total

    def folded(self, old: Expr, value: Expr) -> Expr:
        """``old`` with one more value."""
        operator = {"sum": "+", "and": "&", "or": "|", "xor": "^"}.get(self.fold)
        return Binary(operator, old, value) if operator else Call(Name(self.fold), (old, value))


def targets(kernel: ElementKernel) -> dict[str, Target] | None:
    """The atomic targets by buffer; None when an atomic's result is used, or a buffer with atomics is used in any
    other way, or its type or operation is not one that can be gathered."""
    found: dict[str, Target] = {}
    local = names_declared(kernel)
    count = 0
    for stmt in walk_stmts(kernel.body):
        place = atomic_of(stmt)
        if place is None:
            continue
        count += 1
        pointer, index, operation, value = place
        root = kernel.scene.pointers.roots.get(pointer)
        written = kernel.scene.pointers.elements.get(pointer, "")
        type_ = gathered_type(kernel.target.aliases.get(written, written), operation)
        if root is None or pointer in local or type_ is None:
            return None
        fixed = not names_in(index) & (local | kernel.scene.changing) and not _reads_memory(index)
        new = Target(root, pointer, index, operation, type_, fixed, counts_only(operation, [value]))
        old = found.setdefault(root, new)
        if (old.pointer, old.operation) != (pointer, operation):
            return None
        if old.index != index or old.counts != new.counts:
            same = old.fixed and old.index == index
            found[root] = replace(old, fixed=same, counts=old.counts and new.counts)
    if kernel.scene.exact and any(t.type in ("float", "double") and not t.counts for t in found.values()):
        return None
    atomics = [a for a in kernel.accesses if a.kind == "atomic"]
    others = {a.root for a in kernel.accesses if a.kind != "atomic"}
    if not found or len(atomics) != count or others & set(found):
        return None
    return found


def gathered_type(type_: str, operation: str) -> str | None:
    """The type itself where a block can gather atomics of that operation in it."""
    return type_ if type_ in (ADDED if operation in ("Add", "Sub") else LIMITS) else None


def counts_only(operation: str, values: Iterable[Expr]) -> bool:
    """Whether small whole numbers are added and nothing else: no order of them shows, while they fit the type."""
    return operation == "Add" and all(_count(without_casts(v)) for v in values)


def _count(e: Expr) -> bool:
    """Whether a literal of any type is a small whole number above zero."""
    return isinstance(e, Literal) and re.fullmatch(r"0*[1-9][0-9]{0,2}(\.0*)?[fFuUlL]*", e.text) is not None


def names_declared(kernel: ElementKernel) -> frozenset[str]:
    """The element's number and what its work declares."""
    return frozenset(s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare)) | {kernel.var}


def _reads_memory(expr: Expr) -> bool:

    return any(isinstance(e, Index | Call) or (isinstance(e, Unary) and e.op == "*") for e in walk_expr(expr))


def atomic_of(stmt: Stmt) -> tuple[str, Expr, str, Expr] | None:
    """Pointer, index, operation and value of an atomic statement; None for any other statement or address."""
    match stmt:
        case ExprStmt(expr=Call(callee=Name(text=callee), args=(address, value))) if callee in ATOMICS:
            place = address_of(address)
            return None if place is None else (*place, callee.removeprefix("atomic"), value)
    return None


def address_of(address: Expr) -> tuple[str, Expr] | None:
    """Pointer and index of an address: ``p``, ``&p[i]``, ``p + i``, ``p + i + j``; None for any other."""
    match address:
        case Name(text=pointer):
            return pointer, Literal("0")
        case Unary(op="&", operand=Index(base=Name(text=pointer), index=index)):
            return pointer, index
        case Binary(op="+", left=Name(text=pointer), right=index):
            return pointer, index
        case Binary(op="+", left=Binary(op="+") as left, right=more):
            place = address_of(left)  # a pointer takes each step as it is, where a sum of them might wrap
            return None if place is None else (place[0], Binary("+", Cast("long long", place[1]), more))
    return None


def typed(value: Expr, target: Target, kernel: ElementKernel) -> Expr:
    """The value as the atomic's parameter takes it: converted before it is folded in, not after."""
    scene = kernel.scene
    match value:
        case Literal() if target.type not in ("float", "double") and integer(value) is not None:
            return value
        case Literal() if target.type in ("float", "double"):
            return value
        case Name(text=text) if scene.types.get(text) == target.type:
            return value
        case Index(base=Name(text=pointer)) if scene.pointers.elements.get(pointer) == target.type:
            return value
        case _ if target.type == "float":
            return value
    return Cast(target.type, value, "static_cast")


@dataclass(frozen=True, slots=True)
class Bins:
    """How many bins a scattered target has: as C in the kernel, as a size expression, and at most; ``bytes`` each."""

    code: Expr
    size: str
    most: int
    bytes: int

    @property
    def room(self) -> int:
        """Bytes of one copy of all of them, at most."""
        return self.most * self.bytes


def bins_of(target: Target, kernel: ElementKernel, contract: Contract) -> Bins | None:
    """The bins of a scattered target; None where the contract does not bound them."""
    try:
        argument = contract.argument(target.root)
    except KeyError:
        return None
    size = " * ".join(f"({s})" for s in argument.shape) if len(argument.shape) != 1 else argument.shape[0]
    most = largest(contract, size)
    if most is None or most < 1 or not argument.shape:
        return None
    width = target.bin_bytes
    if size.isdigit():
        return Bins(Literal(size), size, most, width)
    for param in kernel.target.kernel.params:
        if param.is_pointer or param.name in kernel.scene.changing:
            continue
        if kernel.target.size_text(Name(param.name)) == size:
            return Bins(Name(param.name), size, most, width)
    return Bins(Literal(str(most)), str(most), most, width)
