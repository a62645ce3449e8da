"""How a function reaches the elements of a pointer that it is given: the places that it reads, in which of them data
decides where, and which functions it hands the pointer on to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fsr.analysis.accesses import element, pointed
from fsr.analysis.calls import is_load
from fsr.analysis.effects import Unclear
from fsr.analysis.macros import expanded
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.items import flat, parse_items
from fsr.source.macros import reached_by_macros
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import tokenize
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    names_assigned,
    names_in,
    nodes,
    opaque_names,
    subexprs,
    variables,
    walk_expr,
    walk_stmts,
)

_FLOATS = ("float", "double", "half", "bfloat16")
_OF_OBJECTS = re.compile(r"\boperator\b|\[[\s\w&=,]*\]\s*\(")  # lambdas, too


@dataclass(slots=True)
class Uses:
    """``places``: the index of each element read; ``loads``: those through ``__ldg`` and its like among them;
    ``handed``: calls with the pointer, or a place behind it, as the argument of a number."""

    places: list[Expr] = field(default_factory=list)
    loads: list[Call] = field(default_factory=list)
    handed: list[tuple[Call, int]] = field(default_factory=list)


def uses_of(form: KernelForm, pointer: str) -> Uses:
    """All uses of a pointer parameter. Raises Unclear where it is used for more than to read elements."""
    if pointer in names_assigned(form.body) or pointer in variables(form.body):
        raise Unclear(pointer)
    found = Uses()
    for s in walk_stmts(form.body):
        if isinstance(s, OpaqueStmt) and pointer in opaque_names(s.text):
            raise Unclear(pointer)
        if isinstance(s, Assign) and element(s.target, frozenset({pointer})) is not None:
            raise Unclear(pointer)
        if isinstance(s, Declare) and s.type.rstrip().endswith("&") and s.init and pointer in names_in(s.init):
            raise Unclear(pointer)
        for e in exprs_of(s):
            _visit(e, pointer, found)
    return found


def _visit(e: Expr, pointer: str, found: Uses) -> None:
    own = frozenset({pointer})
    if pointer not in names_in(e):
        return
    if (place := element(e, own)) is not None:
        if len(place[1]) != 1:
            raise Unclear(pointer)
        found.places.append(place[1][0])
        _visit(place[1][0], pointer, found)
        return
    match e:
        case Call(args=(arg,)) if is_load(e) and (place := element(Unary("*", arg), own)) is not None:
            found.loads.append(e)
            _visit(Unary("*", arg), pointer, found)
        case Call(callee=callee, args=args):
            _visit(callee, pointer, found)
            for position, arg in enumerate(args):
                behind = pointed(arg, own)
                if behind is None:
                    _visit(arg, pointer, found)
                else:
                    found.handed.append((e, position))
                    if behind[1] is not None:
                        _visit(behind[1], pointer, found)
        case Name() | OpaqueExpr() | Unary("&"):
            raise Unclear(pointer)
        case _:
            for part in subexprs(e):
                _visit(part, pointer, found)


# ---------------------------------------------------------------- by data


class Origins:
    """What the values of a function's variables come of. ``given``: parameters that hold data."""

    def __init__(self, form: KernelForm, given: frozenset[str] = frozenset()) -> None:
        self._types = {p.name: p.type for p in form.params}
        self._from: dict[str, list[Expr]] = defaultdict(list)
        self._given = given
        self._gather(form.body, ())

    def _gather(self, body: Block, tests: tuple[Expr, ...]) -> None:
        for s in body:
            inner = tests
            match s:
                case Declare(type=type_, name=name, init=init):
                    self._types[name] = type_
                    self._from[name] += [] if init is None else [init]
                case Assign(target=Name(name), value=value):
                    self._from[name] += [value, *tests]  # which way a branch goes decides what is assigned
                case For(var=var, start=start, bound=bound, step=step):
                    self._from[var] += [start, bound, step]
                case If(test=test) | While(test=test):
                    inner = (*tests, test)
            for block in blocks_of(s):
                self._gather(block, inner)

    def of_data(self, e: Expr) -> bool:
        """Whether data decides an expression's value: what is read from memory, or is no whole number."""
        seen, pending = set[str](), [e]
        while pending:
            for x in walk_expr(pending.pop()):
                if isinstance(x, Index | OpaqueExpr) or (isinstance(x, Unary) and x.op == "*"):
                    return True
                if isinstance(x, Name) and x.text not in seen:
                    seen.add(x.text)
                    if x.text in self._given or any(f in self._types.get(x.text, "") for f in _FLOATS):
                        return True
                    pending += self._from.get(x.text, ())
        return False


# ---------------------------------------------------------------- through functions


class Followed:
    """A pointer through the functions that a kernel hands it on to, all of which read by it and nothing else."""

    def __init__(self, source: str) -> None:
        items = [i for i in flat(parse_items(source, strict=False)) if i.kind == "function"]
        names = [name for i in items for name in i.names]
        every: Mapping[str, KernelForm] = parse_device_functions(source)
        self._source = source
        self._texts = {name: source[i.start : i.end] for i in items for name in i.names}
        self._functions = {name: form for name, form in every.items() if names.count(name) == 1}
        self._overloaded = len(names) > len(set(names))
        self._seen: set[tuple[str, int, frozenset[str]]] = set()
        self.looked_up = False

    def kernel(self, form: KernelForm, pointer: str) -> Uses:
        """A kernel's own uses, with those of functions followed. Raises Unclear where something else is done."""
        return self._follow(form, pointer, frozenset())

    def _follow(self, form: KernelForm, pointer: str, given: frozenset[str]) -> Uses:
        found, origins = uses_of(form, pointer), Origins(form, given)
        self.looked_up |= any(origins.of_data(index) for index in found.places)
        for call, position in found.handed:
            behind = pointed(call.args[position], frozenset({pointer}))
            self.looked_up |= behind is not None and behind[1] is not None and origins.of_data(behind[1])
            for function in self._called(form, call):
                pairs = zip(function.params, call.args, strict=True)
                data = frozenset(p.name for p, a in pairs if not p.is_pointer and origins.of_data(a))
                self._enter(function, position, data)
        return found

    def _enter(self, function: KernelForm, position: int, given: frozenset[str]) -> None:
        key = (function.name, position, given)
        if key in self._seen:
            return
        self._seen.add(key)
        param = function.params[position]
        if "&" in param.type or "volatile" in param.type or param.type.count("*") > 1:
            raise Unclear(param.name)
        if param.name in reached_by_macros(self._source) or self._is_hidden(function, param.name):
            raise Unclear(param.name)
        if self._follow(expanded(function, self._source), param.name, given).loads:
            raise Unclear(param.name)  # of memory that is not the block's

    def _is_hidden(self, function: KernelForm, name: str) -> bool:
        """Whether a function's text mentions a name where its form does not: in what is compiled by some flags only."""
        told = sum(t.text == name for t in tokenize(self._texts[function.name]))
        shown = sum(isinstance(x, Name) and x.text == name for x in nodes(function.body))
        return told > 1 + shown

    def _called(self, form: KernelForm, call: Call) -> list[KernelForm]:
        """The functions that a call may mean: of a parameter that is a function, all that take as many arguments."""
        name = call.callee.text if isinstance(call.callee, Name) else ""
        every = self._functions.values() if name in {p.name for p in form.params} else [self._functions.get(name)]
        found = [f for f in every if f is not None and len(f.params) == len(call.args)]
        if not found or (name not in self._functions and (self._overloaded or _OF_OBJECTS.search(self._source))):
            raise Unclear(name)
        return found
