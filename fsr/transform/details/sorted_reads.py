"""What is read of an array, and of the variables around, when it has been sorted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from fsr.analysis.instances import Instance, instances, value_of
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    For,
    Index,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.integers import integers
from fsr.source.mapping import replace_stmt
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.tokens import tokenize
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    names_assigned,
    names_in,
    opaque_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """A ``statement`` of a function, as ``one`` of the calls in a ``candidate`` has it, that sorts an ``array``."""

    candidate: Candidate
    one: Instance
    statement: Stmt
    array: str

    @property
    def rest(self) -> Block:
        """All other statements of the function."""
        return replace_stmt(self.one.form.body, self.statement, ())


def reads_only(site: Site, places: Collection[int]) -> frozenset[str] | None:
    """The given constants that it depends on that of an array which is sorted in part only some ``places`` are read
    elsewhere: in the function, and by those who call it with such an array. None where others may be read."""
    form, array, known = site.one.form, site.array, site.one.known
    own, loops = _declared(form, array), _loops_around(form.body, site.statement)
    if _allowed(site.rest, array, places, known) != _mentioned(site.rest, array):
        return None
    depends = frozenset(n for _, e in _elements(site.rest, array) for n in names_in(e.index) & known.keys())
    if own is not None:
        # What is left unread of one turn is sorted in the next.
        return depends if all(any(x is own for x in walk_stmts((d,))) for d in loops) else None
    at = next((n for n, p in enumerate(form.params) if p.name == array), None)
    return depends if at is not None and not loops and _callers_read(site, at, places) else None


def is_read(form: KernelForm, s: Stmt) -> bool:
    """Whether a variable that a statement sets, but does not declare, may be read elsewhere."""
    own = {d.name for d in walk_stmts((s,)) if isinstance(d, Declare)}
    counters = {d.var for d in walk_stmts((s,)) if isinstance(d, For) and d.type is None}
    own |= {d.var for d in walk_stmts((s,)) if isinstance(d, For) and d.type is not None}
    around = [d for d in walk_stmts(form.body) if isinstance(d, For) and any(x is s for x in walk_stmts(d.body))]
    left = (names_assigned((s,)) | counters) - own
    rest = replace_stmt(form.body, s, ())
    return any(name in {d.var for d in around} or _reads(rest, name) for name in left)


# ---------------------------------------------------------------- callers


def _callers_read(site: Site, at: int, places: Collection[int]) -> bool:
    """Whether all that call the function read only those elements of what they call it with."""
    text, name = site.candidate.source, site.one.form.name
    callers = [f for f in (*parse_kernels(text).values(), *parse_device_functions(text).values()) if f.name != name]
    mentions = sum(t.text == name for t in tokenize(text))
    if mentions != 1 + sum(1 for f in callers for _ in _calls(f.body, name)):
        return False
    for form in callers:
        # Of a kernel it is known what its templates are given; of functions it is not certain.
        known = [one.known for one in instances(site.candidate) if one.form.name == form.name]
        if "__device__" in form.prefix or not known:
            known = [{n: v for n, v in integers(text).items() if n not in variables(form.body)}]
        if not all(_caller_reads(site, form, at, places, told) for told in known):
            return False
    return True


def _caller_reads(site: Site, form: KernelForm, at: int, places: Collection[int], known: Mapping[str, int]) -> bool:
    """Whether a function reads only those elements of an array behind the call, and fills those again before it calls
    once more."""
    given = dict[str, list[Call]]()
    for call in _calls(form.body, site.one.form.name):
        if at >= len(call.args) or not isinstance(arg := call.args[at], Name):
            return False
        if not _is_other(site, call, known):
            given.setdefault(arg.text, []).append(call)
    for name, calls in given.items():
        own = _declared(form, name)
        if own is None or len(own.dims) != 1 or variables(form.body).count(name) != 1:
            return False
        if _allowed(form.body, name, places, known) + len(calls) != _mentioned(form.body, name):
            return False
        if not _filled_again(form, own, calls, max(places) + 1):
            return False
    return True


def _is_other(site: Site, call: Call, known: Mapping[str, int]) -> bool:
    """Whether a call gives the function another constant than the one that the sort is looked at with."""
    for param, arg in zip(site.one.form.params, call.args, strict=False):
        value = value_of(arg, known)
        if param.name in site.one.known and value is not None and value != site.one.known[param.name]:
            return True
    return False


def _filled_again(form: KernelForm, own: Declare, calls: Collection[Call], count: int) -> bool:
    """Whether an array is a new one, or has all its elements written, before every call but the first."""
    stmts = [s for s in walk_stmts(form.body) if any(e in calls for whole in exprs_of(s) for e in walk_expr(whole))]
    for s in stmts:
        if not all(any(x is own for x in walk_stmts((d,))) for d in _loops_around(form.body, s)):
            return False
    if len(calls) == 1:
        return len(stmts) == 1
    block = next((b for b in _blocks(form.body) if all(any(x is s for x in b) for s in stmts)), ())
    written: set[int] | None = None  # since the last call
    seen = 0
    for s in block:
        if any(s is x for x in stmts):
            seen += 1
            if written is not None and not written >= set(range(count)):
                return False
            written = set()
        elif written is not None and isinstance(s, Assign) and s.op == "=" and isinstance(s.target, Index):
            place = value_of(s.target.index, {}) if s.target.base == Name(own.name) else None
            written |= set() if place is None else {place}
    return seen == len(calls)


def _calls(body: Block, function: str) -> Iterator[Call]:
    return (e for e in walk_exprs(body) if isinstance(e, Call) and e.callee == Name(function))


def _blocks(body: Block) -> Iterator[Block]:
    yield body
    for s in body:
        for block in blocks_of(s):
            yield from _blocks(block)


# ---------------------------------------------------------------- one function


def _declared(form: KernelForm, array: str) -> Declare | None:
    return next((d for d in walk_stmts(form.body) if isinstance(d, Declare) and d.name == array), None)


def _loops_around(body: Block, s: Stmt) -> list[For | While]:
    return [d for d in walk_stmts(body) if isinstance(d, For | While) and any(x is s for x in walk_stmts(d.body))]


def _expressions(body: Block) -> Iterator[tuple[Stmt, Expr]]:
    for s in walk_stmts(body):
        for whole in exprs_of(s):
            for e in walk_expr(whole):
                yield s, e


def _mentioned(body: Block, array: str) -> int:
    """How often statements mention an array."""
    found = sum(isinstance(s, OpaqueStmt) and array in opaque_names(s.text) for s in walk_stmts(body))
    for _, e in _expressions(body):
        found += e == Name(array) or (isinstance(e, OpaqueExpr) and array in opaque_names(e.text))
        # An address is one of all that follows.
        found += isinstance(e, Unary) and e.op == "&" and array in names_in(e)
    return found


def _elements(body: Block, array: str) -> Iterator[tuple[Stmt, Index]]:
    """Where they write or read one."""
    return ((s, e) for s, e in _expressions(body) if isinstance(e, Index) and e.base == Name(array))


def _allowed(body: Block, array: str, places: Collection[int], known: Mapping[str, int]) -> int:
    """How often they write an element, or read one of some."""
    written = sum(isinstance(s, Assign) and s.op == "=" and e is s.target for s, e in _elements(body, array))
    read = [e for s, e in _elements(body, array) if not (isinstance(s, Assign) and s.op == "=" and e is s.target)]
    return written + sum(value_of(e.index, known) in places for e in read)


def _reads(body: Block, name: str) -> bool:
    for s in body:
        match s:
            case Declare(name=own, init=init) if own == name:
                if init is not None and name in names_in(init):
                    return True
            case Assign(Name(target), "=", value) if target == name:
                if name in names_in(value):
                    return True
            case For(var=var, start=start) if var == name and name not in names_in(start):
                pass
            case OpaqueStmt(text) if name in opaque_names(text):
                return True
            case _ if any(name in names_in(e) for e in exprs_of(s)) or any(_reads(b, name) for b in blocks_of(s)):
                return True
    return False
