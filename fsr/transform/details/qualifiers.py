"""What the compiler may assume of pointers, and which caches loads and stores go through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access, accesses, declared_arrays, pointed
from fsr.analysis.types import aliases, resolved
from fsr.hardware.c_types import NUMBERS
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Param,
    Stmt,
    Ternary,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.references import given_by_reference
from fsr.source.walk import (
    Block,
    base_name,
    exprs_of,
    names_assigned,
    names_in,
    opaque_names,
    subexprs,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

RESTRICT_GAIN = 1.05
HINT_GAIN = 1.03
_HINTED = frozenset(
    name for t in NUMBERS if not t.header for name in (t.spelling, *t.others)
)  # what the cache hints of every toolkit take


@dataclass(frozen=True, slots=True)
class Restrict:
    """``const`` on pointers that are only read through, ``__restrict__`` on all when nothing aliases."""

    name: str = "restrict"
    aims_at: frozenset[str] = frozenset(["latency", "bandwidth", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels where at least one qualifier is missing and the contract rules out aliasing."""
        for target in targets(subject):
            if not target.aliasing and _qualified(target) != target.kernel:
                yield Move(self.name, target.region, (), RESTRICT_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the qualifiers."""
        target = target_of(subject, move)
        return rewritten(target, move, _qualified(target))


def _qualified(target: Target) -> KernelForm:
    kernel = target.kernel
    # A function that takes a pointer itself by reference (``const float *&``) takes none with other qualifiers.
    fixed = given_by_reference(kernel.body, kernel.by_reference)
    return replace(kernel, params=tuple(p if p.name in fixed else _param(kernel, p) for p in kernel.params))


def _param(kernel: KernelForm, param: Param) -> Param:
    if not param.is_pointer or not param.name or param.type.count("*") > 1:
        return param
    constant = param.type.startswith("const ") or not only_read(kernel, param.name)
    return replace(param, type=param.type if constant else f"const {param.type}", restrict=True)


def only_read(kernel: KernelForm, name: str) -> bool:
    """Whether every mention of a pointer parameter is a read of an element, or makes a pointer to const from it."""
    if name in kernel.macro_words:
        return False  # what macros do with it does not show
    mentions = reads = 0
    for s in walk_stmts(kernel.body):
        if isinstance(s, OpaqueStmt) and name in opaque_names(s.text):
            return False
        for e in exprs_of(s):
            mentions += sum(_named(x, name) for x in walk_expr(e))
        if isinstance(s, Declare) and s.type.startswith("const ") and s.type.endswith("*") and s.init is not None:
            reads += sum(_named(x, name) for x in walk_expr(s.init)) if base_name(s.init) == name else 0
        for e in exprs_of(s):
            casts = [x for x in walk_expr(e) if isinstance(x, Cast) and x.type.startswith("const ") and "*" in x.type]
            reads += sum(_named(x, name) for c in casts for x in walk_expr(c.operand) if base_name(c.operand) == name)
    if any(_hands_on(e, name) for e in walk_exprs(kernel.body)):
        return False
    found = [a for a in accesses(kernel) if a.array == name]
    reads += sum(1 for a in found if a.kind == "read" and a.indices)
    return reads >= mentions and all(a.kind == "read" or _through_const(a.expr) for a in found)


def _named(e: Expr, name: str) -> bool:
    return e == Name(name) or (isinstance(e, OpaqueExpr) and name in opaque_names(e.text))


def _hands_on(e: Expr, name: str) -> bool:
    """Whether a call gets a member of an element, which may be an array, or is a method of one."""
    match e:
        case Call(Member(base), _) if base_name(base) == name:
            return True
        case Call(_, args):
            return any(isinstance(a, Member) and base_name(a) == name for a in args)
    return False


def _through_const(e: Expr) -> bool:
    """Whether an access that is no element access only reads through a cast to a pointer to const."""
    match e:
        case Unary("*", Cast(type_, _)):
            return type_.startswith("const ")
    return False


@dataclass(frozen=True, slots=True)
class CacheHint:
    """``__ldg`` or streaming ``__ldcs`` for arrays that are never written, ``__stcs`` for those never read."""

    name: str = "cache-hint"
    aims_at: frozenset[str] = frozenset(["bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The combinations that change anything."""
        for target in targets(subject):
            if target.aliasing:
                continue
            for load, store in (("ldg", "none"), ("ldcs", "stcs"), ("none", "stcs"), ("ldcg", "none")):
                if _hinted(target, load, store) != target.kernel.body:
                    yield Move(self.name, target.region, (("load", load), ("store", store)), HINT_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with hints on its plain element accesses."""
        target = target_of(subject, move)
        body = _hinted(target, str(move.param("load")), str(move.param("store")))
        return rewritten(target, move, replace(target.kernel, body=body))


def _hinted(target: Target, load: str, store: str) -> Block:
    found, names = accesses(target.kernel), aliases(target.source)
    if any(a.array is None for a in found):
        return target.kernel.body
    types = _global_pointers(target)
    hinted = {
        n for n, (_, type_) in types.items() if "volatile" not in type_.split() and resolved(type_, names) in _HINTED
    }
    done: dict[str, list[Access]] = {}
    for a in found:
        done.setdefault(types.get(str(a.array), ("", ""))[0], []).append(a)
    behind = {n: done.get(types[n][0], []) for n in hinted}  # all that is done with what a name points into
    read_only = {n for n, own in behind.items() if all(a.kind == "read" for a in own)}
    write_only = {n for n, own in behind.items() if all(a.kind == "write" and a.indices for a in own)}

    def loads(s: Stmt) -> Stmt:
        return _each(s, lambda e: _load(e, load, read_only)) if load != "none" else s

    def change(s: Stmt) -> Stmt:
        match s:
            case Assign(Index(Name(array), _) as place, "=", value) if store != "none" and array in write_only:
                stored = Call(Name(f"__{store}"), (Unary("&", place), value))
                return loads(ExprStmt(stored, s.span))
        return loads(s)

    return map_stmts(target.kernel.body, change)


def _global_pointers(target: Target) -> dict[str, tuple[str, str]]:
    """Pointers to global memory, with the parameter whose memory that is and their types; none where a local one may
    point anywhere."""
    body, params = target.kernel.body, [p for p in target.kernel.params if p.is_pointer]
    found = {p.name: (p.name, p.type) for p in params}
    changed, arrays = names_assigned(body), declared_arrays(body)
    for s in walk_stmts(body):
        if isinstance(s, Declare) and s.type.endswith("*"):
            place = None if s.init is None else pointed(s.init, frozenset(found) | arrays)
            if place is None or s.dims or {s.name, place[0]} & changed:
                return {}
            if place[0] in found:
                found[s.name] = (found[place[0]][0], s.type)
    return found


def _each(s: Stmt, change: object) -> Stmt:
    """The statement with its own expressions passed through ``change``, which goes down by itself."""
    assert callable(change)
    match s:
        case Assign():
            target = s.target
            if isinstance(target, Index):
                target = Index(target.base, change(target.index))
            return replace(s, target=target, value=change(s.value))
        case Declare(init=None):
            return s
        case Declare():
            return replace(s, init=change(s.init))
        case ExprStmt():
            return replace(s, expr=change(s.expr))
    if hasattr(s, "test"):
        return replace(s, test=change(s.test))
    return s


def _load(e: Expr, load: str, arrays: set[str]) -> Expr:
    match e:
        case Unary("&", _):
            return e  # an address, not a load
        case Index(Name(array), index) if array in arrays:
            return Call(Name(f"__{load}"), (Unary("&", Index(Name(array), _load(index, load, arrays))),))
        case Call(callee, args, templates):
            return Call(callee, tuple(_load(a, load, arrays) for a in args), templates)
        case Binary(op, left, right):
            return Binary(op, _load(left, load, arrays), _load(right, load, arrays))
    return _rebuilt(e, load, arrays)


def _rebuilt(e: Expr, load: str, arrays: set[str]) -> Expr:
    if not subexprs(e) or not names_in(e) & arrays:
        return e

    match e:
        case Unary(op, operand):
            return Unary(op, _load(operand, load, arrays))
        case Cast(type_, operand, style) if "*" not in type_:
            return Cast(type_, _load(operand, load, arrays), style)
        case Ternary(test, yes, no):
            return Ternary(*(_load(x, load, arrays) for x in (test, yes, no)))
        case Index(base, index):
            return Index(base, _load(index, load, arrays))
        case Member(base, name, arrow):
            return Member(_load(base, load, arrays), name, arrow)
    return e
