"""What calls of a file's own functions do to memory and to variables, told as reads and assignments, for analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.braces import with_results_shown
from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.functions import Functions
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueStmt,
    Stmt,
    Unary,
)
from fsr.source.mapping import map_stmts, rewrite
from fsr.source.parse import parse_device_functions
from fsr.source.walk import Block, base_name, contains_opaque, is_zero, walk_exprs, walk_stmts

ANY = Name("$any")  # an index of which nothing is known
_NULLS = (Name("NULL"), Name("nullptr"), Literal("NULL"), Literal("nullptr"))


@dataclass(frozen=True)
class Calls:
    """``functions``: those of the file that read and write through what they are given alone, by name; ``pointers``:
    the names in a kernel that lead to buffers."""

    functions: Mapping[str, KernelForm]
    pointers: frozenset[str]

    def told(self, body: Block) -> Block:
        """The statements with reads and assignments for such calls, and nothing for tests of pointers for NULL; what is
        done to a member of an element is done to the element, and an exchange of which nobody looks at the result is an
        assignment."""
        return map_stmts(rewrite(body, self._read), self._set)

    def _member(self, e: Expr) -> Expr | None:
        """``p[0].m`` for ``p->m``; for an atomic on a member of an element, one on the element."""
        match e:
            case Member(base, name, True) if base_name(base) in self.pointers:
                return Member(Index(rewrite(base, self._read), Literal("0")), name)
            case Call(_, (Unary("&", Member() as place), *others)) if is_atomic(e):
                whole = Unary("&", rewrite(_element_with(place), self._read))
                return replace(e, args=(whole, *(rewrite(x, self._read) for x in others)))
        return None

    def _read(self, e: Expr) -> Expr | None:
        match e:
            case Binary("!=" | "==", Name(one), other) | Binary("!=" | "==", other, Name(one)) if one in self.pointers:
                return Literal("0") if is_zero(other) or other in _NULLS else None
            case Call(Name(name), args) if name in self.functions and not self._sets(e):
                return _together([self._element(a) for a in args])
        return self._member(e)

    def _set(self, s: Stmt) -> Stmt | Iterable[Stmt]:
        match s:
            case ExprStmt(Call(Name("atomicExch"), (place, value))):
                return Assign(Unary("*", place), "=", value)
            case ExprStmt(Call(Name(name), args) as call) if name in self.functions:
                sets = self._sets(call)
                if any(base_name(args[n]) is None or base_name(args[n]) in self.pointers for n in sets):
                    return s
                value = _together([self._element(a) for n, a in enumerate(args) if n not in sets])
                names = [base_name(args[n]) or "" for n in sets]
                # It may look at them, too: no sum, for all that is known.
                return [Assign(Name(n), "=", Binary("/", value, Name(n))) for n in names] or s
        return s

    def _sets(self, call: Call) -> list[int]:
        """Which arguments a call may write through."""
        assert isinstance(call.callee, Name)
        params = self.functions[call.callee.text].params
        return [n for n, p in enumerate(params[: len(call.args)]) if _may_write(p.type)]

    def _element(self, e: Expr) -> Expr:
        """An argument; for a pointer to a buffer, some element of it."""
        read = isinstance(e, Index) or (isinstance(e, Unary) and e.op == "*")
        return Index(e, ANY) if base_name(e) in self.pointers and not read else rewrite(e, self._read)


def _element_with(place: Expr) -> Expr:
    """The element that a member is of."""
    while isinstance(place, Member):
        place = Index(place.base, Literal("0")) if place.arrow else place.base
    return place


def _together(parts: Iterable[Expr]) -> Expr:
    whole: Expr = Literal("0")
    for part in parts:
        whole = Binary("+", whole, part)
    return whole


def _may_write(type_: str) -> bool:
    return bool({"*", "&"} & set(type_)) and "const" not in type_.replace("&", "*").split("*")[0].split()


@lru_cache(maxsize=64)
def calls_in(source: str, functions: Functions) -> Mapping[str, KernelForm]:
    """The functions of a file that compute, read through pointers to const, and write through their other ones."""
    defined = {name: with_results_shown(form, source) for name, form in parse_device_functions(source).items()}
    found = dict[str, KernelForm]()
    while True:
        more = {
            n: f for n, f in defined.items()
            if n in functions.local - functions.pure and n not in found and _is_plain(f, functions, frozenset(found))
        }  # fmt: skip
        if not more:
            return found
        found |= more


def _is_plain(form: KernelForm, functions: Functions, others: frozenset[str]) -> bool:
    """Whether a function writes to nothing but its own variables and through its pointers, and hides nothing."""
    declared = [s for s in walk_stmts(form.body) if isinstance(s, Declare)]
    own = {p.name for p in form.params} | {s.name for s in declared}
    made = any(_may_write(s.type) for s in declared)  # from a pointer to const, perhaps
    opaque = contains_opaque(form.body) or any(isinstance(s, OpaqueStmt) for s in walk_stmts(form.body))
    sets = [s.target for s in walk_stmts(form.body) if isinstance(s, Assign)]
    if made or opaque or not all((base_name(t) or "") in own for t in sets):
        return False
    calls = [e for e in walk_exprs(form.body) if isinstance(e, Call)]
    return all(is_load(c) or (not is_atomic(c) and _is_known(c, functions, others)) for c in calls)


def _is_known(call: Call, functions: Functions, others: frozenset[str]) -> bool:
    name = call.callee.text if isinstance(call.callee, Name) else ""
    return functions.only_computes(name) or name in others
