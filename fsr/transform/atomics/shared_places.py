"""Where a kernel's atomics go, as places behind parameters: ``&p[j]`` of a pointer that the kernel has set to
``sums + row * n`` is a place of ``sums``, and counting up to a limit that no count reaches is adding one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsr.analysis.calls import ATOMICS
from fsr.analysis.effects import element_type
from fsr.analysis.records import members_of
from fsr.analysis.types import number_type
from fsr.records import Role
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Stmt,
    Unary,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, fresh, integer, names_assigned, nodes, taken_names, variables, walk_stmts
from fsr.transform.atomics.global_atomics import address_of, atomic_of
from fsr.transform.sizes import always
from fsr.transform.target import Target

_WIDE = "long long"
_WORD = 2**32
_LIMITS: Mapping[str, int] = {
    "INT_MAX": 2**31 - 1, "__INT_MAX__": 2**31 - 1, "INT32_MAX": 2**31 - 1,
    "UINT_MAX": _WORD - 1, "UINT32_MAX": _WORD - 1,
}  # fmt: skip
_WORDS = ("int", "unsigned", "unsigned int", "uint32_t", "int32_t")
_STEPS = {"atomicInc": "atomicAdd", "atomicDec": "atomicSub"}


def with_plain_places(target: Target) -> Target:
    """The target with its atomics on parameters, not on pointers that were set to somewhere behind them, and with
    counting as adding, where both is the same."""
    kernel = target.kernel
    while (plain := _without_a_pointer(kernel)) is not None:
        kernel = plain
    target = replace(target, kernel=kernel)
    body = map_stmts(kernel.body, lambda s: _as_number(target, _added(target, s)))
    return replace(target, kernel=replace(kernel, body=body))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an atomic statement goes: ``base[index]`` behind parameter ``pointer``, with ``value``."""

    pointer: str
    base: Expr
    index: Expr
    operation: str
    value: Expr


def place_of(s: Stmt) -> Place | None:
    """The place of an atomic statement, behind a parameter or one that is taken for a pointer to numbers."""
    if (found := atomic_of(s)) is not None:
        pointer, index, operation, value = found
        return Place(pointer, Name(pointer), index, operation, value)
    match s:
        case ExprStmt(Call(Name(name), (Unary("&", Index(Cast(_, Name(pointer)) as base, index)), value))):
            return Place(pointer, base, index, name.removeprefix("atomic"), value) if name in ATOMICS else None
    return None


# ---------------------------------------------------------------- members of structures


def _as_number(target: Target, s: Stmt) -> Stmt:
    """``&p->m`` and ``&p[i].m`` as places among numbers, where a parameter points to structures of nothing else."""
    match s:
        case ExprStmt(Call(callee, (Unary("&", Member(base, member, arrow)), value))):
            found = _record_of(target, base if arrow else Unary("&", base))
            if found is not None and (number_ := _number_of(target, found[0], member)) is not None:
                type_, count, at = number_
                index: Expr = number(at)
                if integer(found[1]) != 0:
                    index = Binary("+", Binary("*", found[1], number(count)), index)
                words = Cast(f"{type_} *", Name(found[0]), "reinterpret_cast")
                return replace(s, expr=Call(callee, (Unary("&", Index(words, index)), value)))
    return s


def _record_of(target: Target, address: Expr) -> tuple[str, Expr] | None:
    """The parameter that points to a structure, and which one behind it."""
    found = address_of(address)
    known = {p.name for p in target.kernel.params if p.is_pointer}
    return found if found is not None and found[0] in known - names_assigned(target.kernel.body) else None


def _number_of(target: Target, pointer: str, member: str) -> tuple[str, int, int] | None:
    """The type of all members of the structures behind a parameter, how many they are, and which one a member is."""
    type_ = element_type(next(p.type for p in target.kernel.params if p.name == pointer))
    members = members_of(target.source, type_)
    if members is None or any(m.dims for m in members.values()) or member not in members:
        return None
    types = {number_type(m.type, target.aliases) for m in members.values()}
    return (types.pop(), len(members), list(members).index(member)) if len(types) == 1 else None


def _place(s: Stmt) -> tuple[str, Expr] | None:
    """Pointer and index of an atomic statement of any operation."""
    match s:
        case ExprStmt(expr=Call(callee=Name(text=callee), args=(address, _))) if callee.startswith("atomic"):
            return address_of(address)
    return None


def _mentions(body: Block, name: str) -> int:
    return sum(isinstance(e, Name) and e.text == name for e in nodes(body))


# ---------------------------------------------------------------- pointers that the kernel sets


def _without_a_pointer(kernel: KernelForm) -> KernelForm | None:
    """The kernel without one of its pointers that are set once and have nothing but atomics."""
    changed, declared = names_assigned(kernel.body), variables(kernel.body)
    for s in walk_stmts(kernel.body):
        if not isinstance(s, Declare) or "*" not in s.type or s.dims or s.init is None or s.qualifiers:
            continue
        start = address_of(s.init)
        atomics = sum((place := _place(t)) is not None and place[0] == s.name for t in walk_stmts(kernel.body))
        steady = start is not None and not {s.name, start[0]} & changed and declared.count(s.name) == 1
        if start is not None and steady and 0 < atomics == _mentions(kernel.body, s.name):
            return replace(kernel, body=_from(kernel, s.name, start))
    return None


def _from(kernel: KernelForm, pointer: str, start: tuple[str, Expr]) -> Block:
    """Statements with the pointer's distance from its base in its place, taken where it was set: what it was made of
    may change."""
    distance = fresh(f"{pointer}_at", taken_names(kernel))

    def change(s: Stmt) -> Stmt:
        place = _place(s)
        if isinstance(s, Declare) and s.name == pointer:
            return Declare(f"const {_WIDE}", distance, start[1])
        if place is None or place[0] != pointer or not isinstance(s, ExprStmt) or not isinstance(s.expr, Call):
            return s
        index = Name(distance) if integer(place[1]) == 0 else Binary("+", Name(distance), place[1])
        address = Unary("&", Index(Name(start[0]), index))
        return replace(s, expr=replace(s.expr, args=(address, *s.expr.args[1:])))

    return map_stmts(kernel.body, change)


# ---------------------------------------------------------------- counting


def _added(target: Target, s: Stmt) -> Stmt:
    """``atomicInc(place, limit)`` as ``atomicAdd(place, 1u)`` where no count reaches the limit; others as they are."""
    match s:
        case ExprStmt(expr=Call(callee=Name(text="atomicInc" | "atomicDec" as callee), args=(address, limit))):
            place = address_of(address)
            top = _limit(target, limit)
            # Modulo 2^32 both wrap as addition does, whatever a place holds.
            plain = top == str(_WORD - 1) or (callee == "atomicInc" and place is not None and top is not None
                                              and _stays_below(target, place[0], top))  # fmt: skip
            if plain and callee not in target.functions.own:
                return ExprStmt(Call(Name(_STEPS[callee]), (address, Literal("1u"))))
    return s


def _limit(target: Target, e: Expr) -> str | None:
    """The limit as a size expression of what an unsigned word makes of it."""
    match e:
        case Cast(type=type_, operand=operand) if type_ in _WORDS:
            return _limit(target, operand)
        case Name(text=text) if text in _LIMITS and text not in target.constants:
            return str(_LIMITS[text])
        case Unary(op="~", operand=operand) if integer(operand) is not None:
            return str(~(integer(operand) or 0) % _WORD)
        case Unary(op="-", operand=operand) if integer(operand) is not None:
            return str(-(integer(operand) or 0) % _WORD)
    value = integer(e)
    if value is not None:
        return str(value % _WORD)
    size = target.size_text(e)
    return size if size is not None and always(target.contract, f"min({size}, {_WORD - 1} - ({size})) >= 0") else None


def _stays_below(target: Target, pointer: str, limit: str) -> bool:
    """Whether what a buffer holds on entry, by the contract, and one for each time that any thread counts in it are no
    more than the limit: nothing else changes it, and no thread counts in a loop."""
    argument, body = target.argument(pointer), target.kernel.body
    if argument is None or argument.role is not Role.INOUT or argument.constraints.high is None:
        return False
    counts = [s for s in walk_stmts(body) if (place := _place(s)) is not None and place[0] == pointer]
    alone = len(target.candidate.plan.launches) == 1 and pointer in target.unaliased
    if not alone or len(counts) != _mentions(body, pointer) or target.threads is None:
        return False
    looped = {id(s) for loop in walk_stmts(body) if isinstance(loop, For | While) for s in walk_stmts(loop.body)}
    if any(id(s) in looped or not _counts(s) for s in counts):
        return False
    grid = " * ".join(f"({extent})" for extent in target.launch.grid)
    most = f"({argument.constraints.high}) + {target.threads * len(counts)} * {grid}"
    return always(target.contract, f"({limit}) >= {most}")


def _counts(s: Stmt) -> bool:
    return isinstance(s, ExprStmt) and isinstance(s.expr, Call) and s.expr.callee == Name("atomicInc")
