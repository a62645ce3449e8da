"""register-promotion: an element that a loop reads and writes again and again is kept in a variable meanwhile.

``y[row] += v[j] * x[c[j]]`` loads and stores ``y[row]`` in every turn, as the compiler cannot know that nothing else
in the loop is the same memory (scalar promotion, as LLVM's LICM calls it). The contract says that buffers are apart.
The load must not come where the original does not get to, nor the store where it does not write: both stand under the
loop's first condition and the first turn writes for sure, or the element was set right before the loop. Several
elements of one memory (two slots of shared memory that pointers cut in parts) are kept where each is apart from all
that the loop touches there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from fsr.analysis.accesses import element
from fsr.analysis.calls import ATOMICS, is_atomic
from fsr.analysis.functions import hiding_macros
from fsr.analysis.macros import expanded
from fsr.analysis.memory_groups import is_number, memory_groups
from fsr.analysis.polynomial import Poly
from fsr.analysis.types import bare
from fsr.hardware.c_types import LANES
from fsr.records import Candidate, Role
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
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.macros import macros, reached_by_macros
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.types import plain_type
from fsr.source.walk import (
    BUILTINS,
    Block,
    base_name,
    blocks_of,
    contains_barrier,
    contains_return,
    contains_warp_wide,
    exprs_of,
    fresh,
    is_zero,
    loops,
    names_assigned,
    names_in,
    names_mentioned,
    opaque_names,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.details.elements_apart import Apart
from fsr.transform.details.unroll import trip_count
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

GAIN = 1.4


@dataclass(frozen=True, slots=True)
class RegisterPromotion:
    """All such elements of a kernel at once, each out of the outermost loop that lets it."""

    name: str = "register-promotion"
    aims_at: frozenset[str] = frozenset(["latency", "bandwidth", "instructions", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels with a loop that writes an element whose place does not change in it."""
        for target in targets(subject):
            if promoted(target) != target.kernel.body:
                yield Move(self.name, target.region, (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with variables in the elements' place."""
        target = target_of(subject, move)
        return rewritten(target, move, replace(target.kernel, body=promoted(target)))


def promoted(target: Target) -> Block:
    """The kernel's statements with variables in the elements' place."""
    return Kept(target).block(target.kernel.body)


@dataclass(frozen=True, slots=True)
class Element:
    """One element, or one member of it, of the array or pointer ``array``. ``where``: its indices."""

    array: str
    where: tuple[Poly, ...]
    member: str
    type: str
    expr: Expr

    @property
    def whole(self) -> Expr:
        """The element that it is, or is a member of."""
        return self.expr.base if isinstance(self.expr, Member) and self.member else self.expr


class Kept:
    """A kernel whose loops are gone through from the outside in."""

    def __init__(self, target: Target) -> None:
        self.target, self.kernel, self.taken = target, target.kernel, set(target.names)
        numbers = frozenset(target.constants) | target.type_names | {n for _, n in target.kernel.template_parameters}
        self.groups = memory_groups(target.kernel, target.aliases, numbers)
        self.declared: dict[str, list[Declare]] = {}
        for s in walk_stmts(self.kernel.body):
            if isinstance(s, Declare):
                self.declared.setdefault(s.name, []).append(s)
        self.types = {p.name: p.type for p in self.kernel.params} | {n: d[0].type for n, d in self.declared.items()}
        self.spans = Apart(target, self.declared)
        self.values = {name for kind, name in self.kernel.template_parameters if kind in ("typename", "class")}

    def block(self, body: Block) -> Block:
        """Statements with what their loops keep."""
        out = list[Stmt]()
        for s in body:
            found = [*self.elements(s)] if isinstance(s, For | While) and self.is_quiet(s) else []
            if isinstance(s, For | While) and found:
                _Loop(self, s, out).keep(found)
            else:
                out.append(with_blocks(s, self.block))
        return body if tuple(out) == body else tuple(out)

    # ------------------------------------------------------------ what a loop may do

    def is_quiet(self, loop: For | While) -> bool:
        """Whether nobody can tell when within the loop memory is written: no thread waits for another, nothing that is
        called reaches memory by itself, and the loop ends where it ends."""
        inside: Block = (loop,)
        if contains_return(inside) or contains_barrier(inside) or contains_warp_wide(inside):
            return False
        if any(isinstance(s, OpaqueStmt) for s in walk_stmts(inside)) or names_mentioned(inside) & self.hiding:
            return False
        return all(self._computes(e) for e in walk_exprs(inside))

    def _computes(self, e: Expr) -> bool:
        match e:
            case OpaqueExpr(text):
                return "(" not in text and "asm" not in text
            case Call():
                known = self.target.functions.stays_in_thread(e, self.target.type_names)
                return known and (not is_atomic(e) or (isinstance(e.callee, Name) and e.callee.text in ATOMICS))
        return True

    @cached_property
    def hiding(self) -> frozenset[str]:
        """The macros that stand for more than constants and the thread's place."""
        known = BUILTINS | {m.name for m in macros(self.target.source)}
        hidden = hiding_macros(self.target.source)
        steady = {m.name for m in macros(self.target.source) if opaque_names(m.body) <= (known - hidden)}
        return hidden - steady

    # ------------------------------------------------------------ elements

    def elements(self, loop: For | While) -> Iterator[Element]:
        """The elements that the loop writes, each in an array of which it uses that alone."""
        written = {base_name(s.target) or "" for s in walk_stmts(loop.body) if isinstance(s, Assign)}
        for array in sorted(written & self.groups.keys()):
            if not self.is_apart(array):
                continue
            found, left = list[Element](), tuple[Stmt, ...]((loop,))
            for name in sorted(names_mentioned(left) & self.groups[array]):
                more, left = self._shown(left, name)
                found += more
            if names_mentioned(left) & self.groups[array]:
                continue
            for where in dict.fromkeys(e.where for e in found if e.array == array):
                own = [e for e in found if (e.array, e.where) == (array, where)]
                parts = {e.member for e in own}
                whole = "" not in parts or len(parts) == 1
                if whole and self._meets_no_other(own[0], found) and self._stays(left, array, own):
                    yield from {e.member: e for e in reversed(own)}.values()

    def _meets_no_other(self, one: Element, all_: Sequence[Element]) -> bool:
        """Whether an element is none of the others, as they are called otherwise or stand at another place."""
        others = {(e.array, e.where): e for e in all_ if (e.array, e.where) != (one.array, one.where)}
        return all(self.differ(one, other) for other in others.values())

    def differ(self, one: Element, other: Element) -> bool:
        """Whether two elements have no byte in common, of one thread at a time."""
        return self.spans.apart(*(self.spans.span(e.array, e.where) for e in (one, other)))

    def is_apart(self, array: str) -> bool:
        """Whether what the array leads to is reached by names that are known, one variable each, and by no other
        argument; shared memory or a buffer, not volatile."""
        group = self.groups[array]
        params = {p.name for p in self.kernel.params if p.is_pointer}
        once = all((n in params) + len(self.declared.get(n, ())) == 1 for n in group)
        if not once or group & reached_by_macros(self.target.source) or any("volatile" in self.types[n] for n in group):
            return False
        return group & params <= self.target.unaliased and bool(group & (params | self.target.known.shared))

    def _shown(self, body: Block, array: str) -> tuple[list[Element], Block]:
        """The elements of an array that statements mention, and what is left of these without them."""
        found = list[Element]()

        def change(e: Expr) -> Expr | None:
            if isinstance(e, Unary) and e.op == "&" and base_name(e) == array:
                return Name(array)
            if isinstance(e, Call) and self._takes_reference(e, array):
                return Name(array)
            one = self.element(e, array)
            if one is not None:
                found.append(one)
            return None if one is None else Literal("0")

        left = rewrite(body, change)
        return found, left

    def _takes_reference(self, call: Call, array: str) -> bool:
        callee = call.callee.text if isinstance(call.callee, Name) else ""
        taken = (a for n, a in enumerate(call.args) if f"{callee}({n}" in self.kernel.by_reference)
        return any(array in names_in(a) for a in taken)

    def element(self, e: Expr, array: str) -> Element | None:
        """The whole element of the array, or the member of one, that an expression is."""
        member = e.name if isinstance(e, Member) and not e.arrow else ""
        place = element(e.base if isinstance(e, Member) and member else e, frozenset([array]))
        declared = self.declared.get(array, [])
        if place is None or len(place[1]) != max(1, len(declared[0].dims) if declared else 1):
            return None
        type_ = self._type(array, member)
        return None if type_ is None else Element(array, tuple(map(self.target.poly, place[1])), member, type_, e)

    def _type(self, array: str, member: str) -> str | None:
        """The type of an element, or of a member; None for what is no number or built-in vector."""
        type_ = self.types[array]
        pointer = not self.declared.get(array) or not self.declared[array][0].dims
        if (pointer and type_.count("*") != 1) or (not pointer and "*" in type_):
            return None
        plain, names = bare(type_), self.target.aliases
        if "const" in type_.split() or not (is_number(plain, names) or plain in self.values):
            return None
        if member:
            lanes = LANES.get(plain_type(plain, names))
            return lanes[0].spelling if lanes is not None and member in "xyzw" else None
        return plain

    def _stays(self, left: Block, array: str, found: Sequence[Element]) -> bool:
        """Whether it is the same place in every turn, and of shared arrays a thread's own."""
        own = not self.groups[array] & self.target.known.shared or all(self._is_own(e.whole) for e in found)
        return own and self.is_same_place(left, array, found)

    def is_same_place(self, left: Block, array: str, found: Sequence[Element]) -> bool:
        """Whether indices are the same in every turn of what is left of a loop, and read nothing that is written."""
        changing = names_assigned(left) | {s.name for s in walk_stmts(left) if isinstance(s, Declare)}
        changing |= {inner.var for inner in loops(left)}
        return not any(names_in(e.whole) & changing or not self._is_steady(e.whole, array) for e in found)

    def _is_own(self, whole: Expr) -> bool:
        """Whether the thread's place decides which element it is."""
        alone = replace(self.kernel, body=(ExprStmt(self.target.known.expand(whole)),))
        return "threadIdx" in names_mentioned(expanded(alone, self.target.source).body)

    def _is_steady(self, whole: Expr, array: str) -> bool:
        place = element(whole, frozenset([array]))
        for x in (x for index in (place[1] if place else ()) for x in walk_expr(index)):
            match x:
                case OpaqueExpr() | Unary("*" | "&", _) | Member(_, _, True):
                    return False
                case Call():
                    if not self.target.functions.calls_builtins(x):
                        return False
                case Index(Name(text)):
                    known = self.target.argument(text) if text in self.target.unaliased else None
                    if known is None or known.role is not Role.IN:
                        return False
                case Index():
                    return False
        return True


@dataclass
class _Loop:
    """A loop that keeps elements. ``out``: the statements before it, which it may change and adds itself to."""

    kernel: Kept
    loop: For | While
    out: list[Stmt]
    before: list[Stmt] = field(default_factory=list)
    after: list[Stmt] = field(default_factory=list)
    names: dict[tuple[str, tuple[Poly, ...], str], str] = field(default_factory=dict)

    def keep(self, found: Sequence[Element]) -> None:
        """Add the loop, and what must stand around it, to the statements."""
        behind = list[Stmt]()
        for e in found:
            at = self._set_before(e)
            begins = self._begins(e) if at is None else ""
            if at is None and (begins not in ("read", "write") or not self._writes(self.loop.body, e)):
                continue
            name = fresh(f"{e.array}_{e.member or 'value'}", self.kernel.taken)
            self.kernel.taken.add(name)
            self.names[e.array, e.where, e.member] = name
            if at is None:
                self.before.append(Declare(e.type, name, e.expr if begins == "read" else None))
                self.after.append(Assign(e.expr, "=", Name(name)))
            else:
                set_ = self.out[at]
                assert isinstance(set_, Assign)
                self.out[at] = Declare(e.type, name, set_.value, span=set_.span)
                behind.append(Assign(e.expr, "=", Name(name)))
        loop = with_blocks(rewrite(self.loop, self._named), self.kernel.block)
        self.out += [*self._guarded((*self.before, loop, *self.after)), *behind]

    def _named(self, e: Expr) -> Expr | None:
        for (array, where, member), name in self.names.items():
            one = self.kernel.element(e, array)
            if one is not None and (one.where, one.member) == (where, member):
                return Name(name)
        return None

    def _guarded(self, stmts: Block) -> Block:
        """The statements, where the loop has a first turn."""
        loop = self.loop
        if not self.before or (isinstance(loop, For) and trip_count(self.kernel.target, loop)):
            return stmts
        if isinstance(loop, While):
            return stmts if loop.test == Literal("true") else (If(loop.test, stmts),)
        if loop.type is None:
            return Assign(Name(loop.var), "=", loop.start), If(Binary(loop.relation, Name(loop.var), loop.bound), stmts)
        return (If(Binary(loop.relation, self._start(loop), loop.bound), stmts),)

    def _start(self, loop: For) -> Expr:
        """The first value of the loop's variable, of its type."""
        type_ = (loop.type or "").removeprefix("const ")
        start = self.kernel.types.get(loop.start.text, "") if isinstance(loop.start, Name) else ""
        same = type_ in (start.removeprefix("const "), "auto") or (type_ == "int" and is_zero(loop.start))
        return loop.start if same else Cast(type_, loop.start)

    # ------------------------------------------------------------ what is sure

    def _mentions(self, value: Expr, e: Element) -> bool:
        return any(self._is(x, e) for x in walk_expr(value))

    def _is(self, target: Expr, e: Element) -> bool:
        one = self.kernel.element(target, e.array)
        return one is not None and (one.where, one.member) == (e.where, e.member)

    def _set_before(self, e: Element) -> int | None:
        """Which of the statements before the loop sets the element, if nothing since can have touched it."""
        named = names_in(e.expr)
        for at in reversed(range(len(self.out))):
            match self.out[at]:
                case Comment():
                    continue
                case Assign(target, "=", value) if self._is(target, e):
                    plain = not any(isinstance(x, OpaqueExpr) for x in walk_expr(value))
                    return at if plain and not names_in(self._head()) & self.kernel.groups[e.array] else None
                case Assign(Index() as target, "=", value) if self._is_another(target, e):
                    if names_mentioned((ExprStmt(value),)) & self.kernel.groups[e.array] or not self._is_quiet(value):
                        return None
                case Declare() | Assign(Name() | Index()) as s:
                    changed = names_assigned(s) | ({s.name} if isinstance(s, Declare) else set())
                    touched = names_mentioned((s,)) & self.kernel.groups[e.array]
                    if changed & named or touched or not self.kernel.is_quiet(While(Literal("0"), (s,))):
                        return None
                case _:
                    return None
        return None

    def _is_another(self, target: Expr, e: Element) -> bool:
        """Whether an lvalue is an element of the same memory that is surely not this one, at a place that is known."""
        array = base_name(target) or ""
        one = self.kernel.element(target, array) if array in self.kernel.groups[e.array] else None
        read = target.index if isinstance(target, Index) else target
        return one is not None and self._is_quiet(read) and self.kernel.differ(one, e)

    def _is_quiet(self, value: Expr) -> bool:
        return self.kernel.is_quiet(While(Literal("0"), (ExprStmt(value),)))

    def _head(self) -> Expr:
        """What the loop evaluates before its first turn."""
        if isinstance(self.loop, While):
            return self.loop.test
        return Binary(",", self.loop.start, Binary(",", self.loop.bound, self.loop.step))

    def _begins(self, e: Element) -> str:
        """'read' or 'write' for what the first turn does to the element first, '' where that is not sure, or the loop's
        head cannot be evaluated once more."""
        head = self._head()
        pure = all(not isinstance(x, OpaqueExpr) for x in walk_expr(head))
        pure = pure and self.kernel.target.functions.calls_builtins(head)
        own = isinstance(self.loop, For) and self.loop.var in names_in(self.loop.start) | names_in(self.loop.bound)
        known = all("volatile" not in self.kernel.types.get(n, "") for n in names_in(head))
        if not pure or own or not known or names_in(head) & self.kernel.groups[e.array]:
            return ""
        return self._first(self.loop.body, e)

    def _first(self, body: Block, e: Element) -> str:
        perhaps_read = False  # under a condition, which does no harm where it is read in any case
        for s in body:
            if isinstance(s, Assign) and s.op == "=" and self._is(s.target, e) and not self._mentions(s.value, e):
                return "" if perhaps_read else "write"
            if any(self._mentions(x, e) for x in exprs_of(s)):
                return "read"
            firsts = {self._first(block, e) for block in blocks_of(s)}
            if isinstance(s, For | While) and not self._runs(s):
                firsts.add("none")
            if firsts == {"read", "none"}:
                perhaps_read = True
            elif firsts - {"none"}:
                return firsts.pop() if len(firsts) == 1 and not perhaps_read else ""
        return "none"

    def _runs(self, loop: For | While) -> bool:
        """Whether a loop has a first turn for sure."""
        return isinstance(loop, For) and bool(trip_count(self.kernel.target, loop))

    def _writes(self, body: Block, e: Element) -> bool:
        """Whether the statements write the element whatever happens."""
        for s in body:
            match s:
                case Assign(target) if self._is(target, e):
                    return True
                case If(_, then, orelse) if self._writes(then, e) and self._writes(orelse, e):
                    return True
                case Scope(inner) if self._writes(inner, e):
                    return True
                case For() if self._runs(s) and self._writes(s.body, e):
                    return True
            if any(isinstance(x, Jump) for x in walk_stmts((s,))):
                return False
        return False
