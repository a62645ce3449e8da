"""Where the functions of a file sort an array of constant length by comparing and exchanging its elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.comparators import comparators
from fsr.analysis.compared import MOST_PLACES, Surroundings
from fsr.analysis.instances import Instance, instances
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
    Scope,
    Stmt,
    While,
)  # fmt: skip
from fsr.source.integers import integers
from fsr.source.items import flat, parse_items
from fsr.source.macros import expand, macro_words, statement_macros
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.walk import (
    Block,
    blocks_of,
    names_mentioned,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.function_loops import in_characters
from fsr.transform.details.sorted_reads import Site, is_read, reads_only

LEAST = 3  # elements
MOST_WAYS = 6  # lengths of one sort, each of which becomes a network
_FLUSHES = re.compile(r"fast[-_]math|ftz")
_USED = frozenset(["fminf", "fmaxf", "__float_as_int", "__double2hiint"])
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
    """What sorts, in the order of the text; a statement once for each length that calls give it. Where a plan flushes
    small numbers, minima do too and exchanges do not: nothing then."""
    if any(_FLUSHES.search(flag) for flag in candidate.plan.flags):
        return []
    found = dict[tuple[int, int], dict[tuple[tuple[str, int], ...], set[SortedArray]]]()
    for one in instances(candidate):
        for s in _in_function(candidate, one):
            found.setdefault((s.start, s.end), {}).setdefault(s.given, set()).add(s)
    # What is one with the same constants depends on more than those.
    fine = [ways for ways in found.values() if all(len(alike) == 1 for alike in ways.values())]
    every = [s for ways in fine if len(ways) <= MOST_WAYS for alike in ways.values() for s in alike]
    return sorted(every, key=lambda s: (s.start, -s.end, len(s.given), -s.count, s.given))


def _in_function(candidate: Candidate, one: Instance) -> Iterator[SortedArray]:
    form, text = one.form, candidate.source
    hidden = macro_words(text)
    types = {name: kind for kind, name in form.template_parameters} | {p.name: p.type for p in form.params}
    types |= {s.name: s.type for s in walk_stmts(form.body) if isinstance(s, Declare)}
    functions = parse_device_functions(text)
    around = Surroundings(one.known, integers(text), functions, types, aliases(text))
    theirs = functions.keys() & _USED
    for array, type_ in _arrays(form):
        element = resolved(_given_type(text, form, array, type_), aliases(text))
        known = element in ("float", "double") or integer_bytes(element)
        if array in hidden or not known or theirs or {"const", "volatile"} & set(type_.split()):
            continue
        for before, s in _statements(form.body, array):
            read = _one(Site(candidate, one, s, array), before, type_, around)
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
        case Declare(init=init, dims=(), qualifiers=()):
            return init is None or not any(isinstance(e, Index | Call | OpaqueExpr) for e in walk_expr(init))
        case Assign(Name(), "=", value):
            return not any(isinstance(e, Index | Call | OpaqueExpr) for e in walk_expr(value))
    return False


def _one(site: Site, before: Block, type_: str, around: Surroundings) -> tuple[int, bool, frozenset[str]] | None:
    """How many elements a statement behind others sorts, whether the greatest come first, and the constants that this
    rests on."""
    body, found = (*before, site.statement), None
    for start in range(len(body)):  # what cannot be gone through need not matter
        found = found or comparators(body[start:], site.array, type_, around)
    if found is None or is_read(site.one.form, site.statement):
        return None
    count = max(max(pair) for pair in found.pairs) + 1
    if not LEAST <= count <= MOST_PLACES:
        return None
    mirrored = [(count - 1 - low, count - 1 - high) for low, high in found.pairs]
    for descends, pairs in ((False, found.pairs), (True, mirrored)):
        places = settled(pairs, count, loose=found.loose, early=found.early, exits=found.exits)
        if descends:
            places = frozenset(count - 1 - place for place in places)
        if len(places) == count:
            return count, descends, found.named
        depends = reads_only(site, places) if places else None
        if depends is not None:
            return count, descends, found.named | depends
    return None


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
