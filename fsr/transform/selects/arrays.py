"""The small arrays of a thread of which only elements are used, so that each element may be a register."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.functions import Functions, functions_of, thread_aware
from fsr.analysis.instances import declared_values, value_of
from fsr.analysis.macros import constants
from fsr.analysis.types import aliases, bare, integer_bytes, resolved
from fsr.hardware.c_types import BY_SPELLING, element_bytes
from fsr.source.arrays import indices_of, is_only_one
from fsr.source.form import Call, Declare, Expr, KernelForm, Name, OpaqueExpr, OpaqueStmt, Stmt, Unary
from fsr.source.macros import macro_words
from fsr.source.mapping import map_expr
from fsr.source.references import by_reference, given_by_reference
from fsr.source.walk import (
    Block,
    base_name,
    contains_barrier,
    contains_warp_wide,
    exprs_of,
    identifiers,
    names_assigned,
    names_in,
    opaque_names,
    variables,
    walk_exprs,
    walk_stmts,
)  # fmt: skip

_MOST_IN_ALL = 96  # of two dimensions, a small system of equations: doubles take two registers of 255
_ZEROS = ("{}", "{0}", "{0.0f}", "{0.f}", "{0.0}", "{false}")
_TEMPLATE_TYPES = ("typename", "class")


@dataclass(frozen=True, slots=True)
class Place:
    """A kernel or a function of a text. ``known``: the integers that its names always stand for."""

    form: KernelForm
    source: str
    known: Mapping[str, int]

    @property
    def functions(self) -> Functions:
        """What the functions of its file do."""
        return functions_of(self.source)

    @property
    def by_reference(self) -> frozenset[str]:
        """Which arguments the functions of its file may change."""
        return by_reference(self.source)

    def changed(self, body: Block) -> frozenset[str]:
        """The variables that statements may change."""
        return names_assigned(body) | given_by_reference(body, self.by_reference)

    @property
    def types(self) -> Mapping[str, str]:
        """The file's own names for types, template parameters as themselves."""
        named = {name: name for kind, name in self.form.template_parameters if kind in _TEMPLATE_TYPES}
        return {**aliases(self.source), **named}


def place_of(form: KernelForm, source: str, entry: str) -> Place:
    """A kernel as a plan launches it, by its ``entry``; of a device function '', since calls may differ."""
    hidden = {name for _, name in form.template_parameters} if not entry else set[str]()
    form = replace(form, macro_words=form.macro_words or macro_words(source))
    known = {name: value for name, value in constants(source, form, entry).items() if name not in hidden}
    return Place(form, source, {**known, **declared_values(form, known)})


@dataclass(frozen=True, slots=True)
class SmallArray:
    """An array of numbers of a thread. ``whole``: of integers, whose sums have no order."""

    declared: Declare
    extents: tuple[int, ...]
    whole: bool

    @property
    def name(self) -> str:
        """The variable's."""
        return self.declared.name

    @property
    def elements(self) -> int:
        """In all dimensions."""
        return math.prod(self.extents)

    def fits(self, most: int) -> bool:
        """Whether registers hold it, and lines of it are no longer than ``most``."""
        return self.elements <= most or (len(self.extents) == 2 and max(self.extents) <= most
                                         and self.elements <= _MOST_IN_ALL)  # fmt: skip


def small_arrays(place: Place, most: int) -> list[SmallArray]:
    """The arrays of up to ``most`` elements, along each of two dimensions, that a kernel or function declares for a
    thread, of which nothing but whole elements is used, in the order of the text."""
    body = place.form.body
    if any(isinstance(s, OpaqueStmt) and "goto" in opaque_names(s.text) for s in walk_stmts(body)):
        return []
    arrays = [s for s in walk_stmts(body) if isinstance(s, Declare) and s.dims and not s.qualifiers]
    return [found for a in arrays if (found := _one(place, a)) is not None and found.fits(most)]


def given_arrays(form: KernelForm) -> Callable[[Call], bool]:
    """Whether a call is given one of a kernel's own arrays as a whole."""
    own = {s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and s.dims and not s.qualifiers}

    def wanted(call: Call) -> bool:
        return any(isinstance(a, Name) and a.text in own for a in call.args)

    return wanted


def _one(place: Place, array: Declare) -> SmallArray | None:
    extents = [value_of(d, place.known) for d in array.dims]
    type_ = resolved(array.type, place.types)
    if not all(n is not None and n > 0 for n in extents) or len(extents) > 2:
        return None
    changes = not {"const", "volatile"} & set(array.type.split()) and bare(array.type) == array.type.strip()
    flags = type_ == "bool" and array.init is not None  # all elements are looked at, and no flag is just any byte
    if not changes or (element_bytes(type_) is None and not flags):
        return None
    if len(extents) > 1 and array.init is not None and _text(array.init) not in _ZEROS:
        return None  # in braces within braces
    unique = is_only_one(place.form, array) and array.name not in place.form.macro_words
    if not unique or not _elements_only(place.form, array):
        return None
    known = BY_SPELLING.get(type_)
    whole = integer_bytes(type_) is not None and known is not None and not known.header
    return SmallArray(array, tuple(n for n in extents if n), whole)


def _text(init: Expr) -> str:
    return "".join(getattr(init, "text", "?").split())


def _elements_only(form: KernelForm, array: Declare) -> bool:
    """Whether every mention of the array is a whole element, of which nobody takes the address or makes a reference."""
    return all(_uses_elements(s, array) for s in walk_stmts(form.body)) and not any(
        isinstance(x, Unary) and x.op == "&" and base_name(x) == array.name for x in walk_exprs(form.body)
    )


def _uses_elements(s: Stmt, array: Declare) -> bool:
    if isinstance(s, OpaqueStmt):
        return array.name not in opaque_names(s.text)
    if isinstance(s, Declare) and "&" in s.type and s.init is not None and array.name in names_in(s.init):
        return False
    apart = (map_expr(e, lambda x: Name("0") if indices_of(x, array) is not None else x) for e in exprs_of(s))
    return all(array.name not in names_in(e) for e in apart)


def own_names(form: KernelForm) -> frozenset[str]:
    """Parameters and variables, none of which is a reference or has its address taken: what changes them names them."""
    named = {p.name for p in form.params if "&" not in p.type} | set(variables(form.body))
    shared = {s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and ("&" in s.type or s.qualifiers)}
    taken = {base_name(e) or "" for e in walk_exprs(form.body) if isinstance(e, Unary) and e.op == "&"}
    return frozenset(named - shared - taken)


def goes_alone(body: Block, source: str) -> bool:
    """Whether a thread's statements wait for no other and exchange nothing, so that they may be done in other turns."""
    together = contains_barrier(body) or contains_warp_wide(body)
    called = {e.callee.text for e in walk_exprs(body) if isinstance(e, Call) and isinstance(e.callee, Name)}
    hidden = any(isinstance(e, OpaqueExpr) and identifiers(e) & thread_aware(source) for e in walk_exprs(body))
    return not together and not hidden and not called & thread_aware(source)
