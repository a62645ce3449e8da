"""Where the functions of a file sort an array of constant length by comparing and exchanging its elements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.comparators import comparators
from fsr.analysis.compared import Surroundings
from fsr.analysis.instances import Instance, instances, value_of
from fsr.analysis.sorting_networks import settled
from fsr.analysis.types import aliases, integer_bytes, resolved
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    For,
    Index,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.integers import integers
from fsr.source.items import flat, parse_items
from fsr.source.macros import expand, macro_words, statement_macros
from fsr.source.mapping import replace_stmt
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    names_assigned,
    names_in,
    names_mentioned,
    opaque_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.function_loops import in_characters

LEAST, MOST = 3, 64  # elements
_FLUSHES = re.compile(r"fast[-_]math|ftz")
_USED = frozenset(["fminf", "fmaxf", "fmin", "fmax", "__float_as_int", "__double_as_longlong"])
_PROBE = "fsr_statement_alone"
_PRAGMAS = re.compile(r"(?:#\s*pragma[^\n]*\n\s*)+$")


@dataclass(frozen=True, slots=True)
class SortedArray:
    """A statement, at ``start`` to ``end`` of the text in characters, that puts the first ``count`` elements of
    ``array``, of type ``element``, in order where ``given`` constants have their values. ``function``: where its
    function begins."""

    start: int
    end: int
    function: int
    array: str
    element: str
    count: int
    descends: bool
    given: tuple[tuple[str, int], ...]

    @property
    def is_floating(self) -> bool:
        """Whether there may be elements that have no place in the order."""
        return self.element in ("float", "double")


def sorted_arrays(candidate: Candidate) -> list[SortedArray]:
    """What sorts, in the order of the text. Where a plan flushes small numbers, minima do too and exchanges do not:
    nothing then."""
    if any(_FLUSHES.search(flag) for flag in candidate.plan.flags):
        return []
    found = dict[int, SortedArray | None]()
    for one in instances(candidate):
        for s in _in_function(candidate.source, one):
            # Of two lengths that calls give a function, none is the one.
            found[s.start] = s if found.get(s.start, s) == s else None
    return sorted((s for s in found.values() if s is not None), key=lambda s: s.start)


def _in_function(text: str, one: Instance) -> Iterator[SortedArray]:
    form, hidden = one.form, macro_words(text)
    types = {name: kind for kind, name in form.template_parameters} | {p.name: p.type for p in form.params}
    types |= {s.name: s.type for s in walk_stmts(form.body) if isinstance(s, Declare)}
    functions = parse_device_functions(text)
    around = Surroundings(one.known, integers(text), functions, types)
    theirs = functions.keys() & _USED
    for array, type_ in _arrays(form):
        element = resolved(_given_type(text, form, array, type_), aliases(text))
        known = element in ("float", "double") or integer_bytes(element)
        if array in hidden or not known or theirs or {"const", "volatile"} & set(type_.split()):
            continue
        for before, s in _statements(form.body, array):
            read = _one(form, (*before, s), array, type_, around)
            place = None if read is None else _place(text, s)
            if read is not None and place is not None:
                count, descends, named = read
                own = types.keys() & named
                fixed = {name for name in named - own if integers(text).get(name) == one.known[name]}
                given = tuple(sorted((name, one.known[name]) for name in named - fixed))
                function = in_characters(text, (form.span or (0, 0))[0])
                yield SortedArray(*place, function, array, element, count, descends, given)


def _arrays(form: KernelForm) -> Iterator[tuple[str, str]]:
    """The names and types of elements of a function's arrays, its own and those that it is given, of one name each."""
    names = [*variables(form.body), *(p.name for p in form.params)]
    for s in walk_stmts(form.body):
        if isinstance(s, Declare) and len(s.dims) == 1 and not s.qualifiers and names.count(s.name) == 1:
            yield s.name, s.type
    for p in form.params:
        if p.type.count("*") == 1 and names.count(p.name) == 1 and "__device__" in form.prefix:
            yield p.name, p.type.split("*")[0].strip()


def _given_type(text: str, form: KernelForm, array: str, type_: str) -> str:
    """The type of an array's elements; of one that a template over a type is given, that which all its calls give."""
    if form.template_parameters not in ((("typename", type_),), (("class", type_),)):
        return type_
    found, at = set[str](), next((n for n, p in enumerate(form.params) if p.name == array), -1)
    for caller in (*parse_kernels(text).values(), *parse_device_functions(text).values()):
        declared = {s.name: s for s in walk_stmts(caller.body) if isinstance(s, Declare)}
        for e in walk_exprs(caller.body):
            if isinstance(e, Call) and e.callee == Name(form.name):
                arg = e.args[at] if 0 <= at < len(e.args) else None
                own = declared.get(arg.text) if isinstance(arg, Name) else None
                found.add(own.type if own is not None and len(own.dims) == 1 else "")
    return found.pop() if len(found) == 1 else ""


def _statements(body: Block, array: str) -> Iterator[tuple[Block, Stmt]]:
    """The loops that mention an array, outermost first, each behind what sets variables right before it."""
    for at, s in enumerate(body):
        if array in names_mentioned((s,)):
            if isinstance(s, For | While | Scope):
                sets = list[Stmt]()
                while len(sets) < at and _sets_a_number(body[at - 1 - len(sets)]):
                    sets.insert(0, body[at - 1 - len(sets)])
                yield tuple(sets), s
            for block in blocks_of(s):
                yield from _statements(block, array)


def _sets_a_number(s: Stmt) -> bool:
    match s:
        case Declare(init=init, dims=(), qualifiers=()) if init is not None:
            return not any(isinstance(e, Index | Call | OpaqueExpr) for e in walk_expr(init))
        case Assign(Name(), "=", value):
            return not any(isinstance(e, Index | Call | OpaqueExpr) for e in walk_expr(value))
    return False


def _one(
    form: KernelForm, body: Block, array: str, type_: str, around: Surroundings
) -> tuple[int, bool, frozenset[str]] | None:
    """How many elements the last of some statements sorts, whether the greatest come first, and the constants that this
    rests on."""
    s, found = body[-1], None
    for start in range(len(body)):  # what cannot be gone through need not matter
        found = found or comparators(body[start:], array, type_, around)
    if found is None or _is_read(form, s):
        return None
    count = max(max(pair) for pair in found.pairs) + 1
    if not LEAST <= count <= MOST:
        return None
    mirrored = [(count - 1 - low, count - 1 - high) for low, high in found.pairs]
    for descends, pairs in ((False, found.pairs), (True, mirrored)):
        places = settled(pairs, count, loose=found.loose, early=found.early)
        if descends:
            places = frozenset(count - 1 - place for place in places)
        if len(places) == count or (places and _reads_only(form, s, array, places, around.known)):
            return count, descends, found.named
    return None


def _reads_only(form: KernelForm, s: Stmt, array: str, places: Collection[int], known: Mapping[str, int]) -> bool:
    """Whether elsewhere of a function's own array only some of its elements are read."""
    own = next((d for d in walk_stmts(form.body) if isinstance(d, Declare) and d.name == array), None)
    loops = [d for d in walk_stmts(form.body) if isinstance(d, For | While) and any(x is s for x in walk_stmts(d.body))]
    if own is None or any(all(x is not own for x in walk_stmts(d.body)) for d in loops):
        return False  # what is left unread of one turn is sorted in the next
    allowed = mentioned = 0
    rest = replace_stmt(form.body, s, ())
    for x in walk_stmts(rest):
        mentioned += sum(e == Name(array) for whole in exprs_of(x) for e in walk_expr(whole))
        mentioned += isinstance(x, OpaqueStmt) and array in opaque_names(x.text)
        for e in (e for whole in exprs_of(x) for e in walk_expr(whole)):
            mentioned += isinstance(e, OpaqueExpr) and array in opaque_names(e.text)
            written = isinstance(x, Assign) and x.op == "=" and e is x.target
            if isinstance(e, Index) and e.base == Name(array):
                allowed += written or value_of(e.index, known) in places
            if isinstance(e, Unary) and e.op == "&" and array in names_in(e):
                return False
    return allowed == mentioned


def _is_read(form: KernelForm, s: Stmt) -> bool:
    """Whether a variable that a statement sets, but does not declare, may be read elsewhere."""
    own = {d.name for d in walk_stmts((s,)) if isinstance(d, Declare)}
    counters = {d.var for d in walk_stmts((s,)) if isinstance(d, For) and d.type is None}
    own |= {d.var for d in walk_stmts((s,)) if isinstance(d, For) and d.type is not None}
    around = [d for d in walk_stmts(form.body) if isinstance(d, For) and any(x is s for x in walk_stmts(d.body))]
    left = (names_assigned((s,)) | counters) - own
    rest = replace_stmt(form.body, s, ())
    return any(name in {d.var for d in around} or _reads(rest, name) for name in left)


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


def _place(text: str, s: Stmt) -> tuple[int, int] | None:
    """Where a statement stands, with the pragmas in front of it; None where there is another one by itself."""
    data, (start, end) = text.encode(), s.span or (0, 0)
    before, own = (part.decode(errors="replace") for part in (data[:start], data[start:end]))
    alone = parse_kernels(f"{text}\n__global__ void {_PROBE}() {{\n{own}\n}}\n").get(_PROBE)
    if alone is None or alone.body != ((replace(s, pragmas=()) if isinstance(s, For | While) else s),):
        return None
    pragmas = _PRAGMAS.search(before)
    return (len(before) if pragmas is None else pragmas.start()), len(before) + len(own)


def written_out(candidate: Candidate) -> Candidate:
    """The candidate with macros that are statements (``SWAP(a, b)``) expanded in its functions, as forms have them."""
    text = candidate.source
    known = statement_macros(text)
    items = [i for i in flat(parse_items(text)) if i.kind == "function" and i.body is not None] if known else []
    for item in sorted(items, key=lambda i: i.start, reverse=True):
        assert item.body is not None
        text = text[: item.body] + expand(text[item.body : item.end], known) + text[item.end :]
    return candidate if text == candidate.source else replace(candidate, source=text)
