"""Kernels that were written when the lanes of a warp ran in step, as they were meant: with ``__syncwarp()`` between.

Lanes run in step no more since Volta (CUDA C++ Programming Guide, Independent Thread Scheduling), so that a lane which
reads what another wrote in the statement before is a race. In step, all lanes read before any of them writes, and the
next statement sees what they wrote: a statement is split into its reading and its writing, with a barrier of the warp
behind each. Only statements that all lanes of a warp come to are split, or whose branch can be made a condition of the
reading and of the writing. A loop that lanes leave at different times, each with its own elements, has a barrier before
and behind it: they would have come out of it together. Where others are in the way, nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from fsr.analysis.functions import own_name
from fsr.analysis.lane_accesses import ANYWHERE, Access, Unit, statements_of
from fsr.analysis.lane_values import WARP, collide
from fsr.analysis.lane_walk import Walk, assignments, is_element
from fsr.records import Launch
from fsr.source.emit import emit_expr
from fsr.source.entry import function_name
from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    If,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.inner_branches import with_branches_decided
from fsr.source.items import flat, parse_items
from fsr.source.macros import Macro, macros
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.tokens import tokenize
from fsr.source.walk import base_name, walk_expr, walk_exprs, walk_stmts

_SYNC = "__syncwarp();"
_MOST_THREADS = 1024
_MOST_ACCESSES = 256  # between two barriers, of which each is held against each
Parts = tuple[Stmt, ...]
_AROUND: tuple[Parts, str] = ((), "")  # barriers before and behind what stays as it is


@dataclass(frozen=True, slots=True)
class InStep:
    """A text with barriers of the warp, and the lines that were written anew: as many lines as there were."""

    text: str
    lines: tuple[int, ...]


class _Unfit(Exception):  # noqa: N818  # a reason, not an error of the program
    """A place that cannot be written anew."""


def in_step(source: str, launches: Iterable[Launch]) -> InStep | None:
    """A translation unit as its author meant it, who took the lanes of a warp to run in step; None where it does not
    look like that, has barriers of the warp already, or is of a shape for which this cannot be shown."""
    if "__syncwarp" in source:
        return None
    read = with_branches_decided(source)
    kernels, functions = parse_kernels(read), parse_device_functions(read)
    try:
        edits, walks = dict[Unit, tuple[Parts, str]](), list[Walk]()
        for name, shape in dict.fromkeys((function_name(x.entry), _shape(x)) for x in launches):
            walks.append(_walked(read, name, kernels, functions, shape))
            found = _split(walks[-1], {**functions, **kernels})
            if any(edits.get(unit, new) != new for unit, new in found.items()):
                return None
            edits |= found
        if any(unit in walk.split for walk in walks for unit in edits):
            return None
        _require_seen(read, edits, {**functions, **kernels})
    except _Unfit:
        return None
    return _edited(source, read, edits) if edits else None


def _shape(launch: Launch) -> tuple[int, int, int]:
    """A block's threads. Raises _Unfit where they depend on sizes, or are no whole warps: what lanes that do not exist
    are to a barrier of the warp, nobody says."""
    if not all(text.strip().isdigit() for text in launch.block):
        raise _Unfit
    x, y, z = (int(text) for text in launch.block)
    if not 0 < prod((x, y, z)) <= _MOST_THREADS or prod((x, y, z)) % WARP:
        raise _Unfit
    return x, y, z


def _walked(
    text: str, name: str, kernels: Mapping[str, KernelForm], functions: Mapping[str, KernelForm],
    shape: tuple[int, int, int],
) -> Walk:  # fmt: skip
    if name not in kernels:
        raise _Unfit
    walk = Walk(_only_ones(text, functions), _macros(text), shape, _arrays(text))
    walk.kernel(kernels[name])
    return walk


def _macros(text: str) -> dict[str, Macro]:
    """The macros of a text; one that is defined in several ways stands for nothing that is known."""
    found = dict[str, Macro]()
    for macro in macros(text):
        same = found.setdefault(macro.name, macro) == macro
        found[macro.name] = macro if same else Macro(macro.name, macro.params, "")
    return found


def _only_ones(text: str, functions: Mapping[str, KernelForm]) -> dict[str, KernelForm]:
    """The functions of which there is one of the name."""
    names = [i.names[0] for i in flat(parse_items(text, strict=False)) if i.kind == "function" and i.names]
    return {name: form for name, form in functions.items() if names.count(name) == 1}


def _arrays(text: str) -> frozenset[str]:
    """The arrays of the file."""
    items = [i for i in flat(parse_items(text, strict=False)) if i.kind == "variable"]
    return frozenset(name for i in items if "[" in text[i.start : i.end] for name in i.names)


# ---------------------------------------------------------------- what must be split


def _split(walk: Walk, forms: Mapping[str, KernelForm]) -> dict[Unit, tuple[Parts, str]]:
    """The statements to write anew, and the loops, of no parts, that want barriers around them. Raises _Unfit where one
    of them cannot be."""
    units, loops = dict[Unit, None](), dict[Unit, None]()
    by_stretch: dict[int, list[Access]] = {}
    for access in walk.accesses:
        by_stretch.setdefault(access.stretch, []).append(access)
    for accesses in by_stretch.values():
        for access in _to_order(accesses):
            if access.unit is not None:
                units.setdefault(access.unit)
            elif access.loop is not None:
                loops.setdefault(access.loop)
            else:
                raise _Unfit
    anew = {unit: (walk.parts[unit], _anew(walk.parts[unit], forms[unit.function])) for unit in units}
    return anew | dict.fromkeys(loops, _AROUND)


def _to_order(accesses: Sequence[Access]) -> list[Access]:
    """The writes, between two barriers of the block, that must be ordered with what other lanes of the warp do; none
    of memory where no two are seen to meet. Raises _Unfit where two lanes write one element at once: none of them is
    the last."""
    written = {a.memory for a in accesses if a.writes}
    if ANYWHERE not in written:
        accesses = [a for a in accesses if a.memory in written or (a.memory == ANYWHERE and written)]
    if len(accesses) > _MOST_ACCESSES:
        raise _Unfit
    met, sure = list[tuple[Access, Access]](), set[str]()
    for i, a in enumerate(accesses):
        for b in accesses[i:]:
            if not (a.writes or b.writes) or not (a.memory == b.memory or ANYWHERE in (a.memory, b.memory)):
                continue
            if a.writes and b.writes and a.instance == b.instance and a is not b:
                continue  # of one thread, one after the other
            meets = collide(a.at, b.at, a.lanes, b.lanes) if a.memory == b.memory else None
            if meets is not False:
                met.append((a, b))
            if meets or (meets is None and a.instance != b.instance):
                sure |= {a.memory, b.memory}
    pairs = [pair for pair in met if any(x.memory in sure for x in pair)]
    if any(a.loop is not None and a.loop == b.loop for a, b in pairs):
        raise _Unfit  # in a loop that they are apart in
    writes = [x for pair in pairs for x in pair if x.writes]
    if any(collide(x.at, x.at, x.lanes, x.lanes) is not False for x in writes):
        raise _Unfit
    return writes


def _require_seen(text: str, edits: Iterable[Unit], forms: Mapping[str, KernelForm]) -> None:
    """Raise _Unfit where a function to be written anew may be called from where nobody looked: by a macro, in text that
    could not be read."""
    words = [own_name(t.text) for t in tokenize(text) if t.kind == "name"]
    items = [i for i in flat(parse_items(text, strict=False)) if i.kind in ("function", "prototype")]
    for name in {unit.function for unit in edits}:
        if forms[name].span is None:
            raise _Unfit
        calls = sum(
            isinstance(e, Name) and own_name(e.text) == name for form in forms.values() for e in walk_exprs(form.body)
        )
        if words.count(name) != calls + sum(name in i.names for i in items):
            raise _Unfit


# ---------------------------------------------------------------- how it is written


def _anew(parts: Sequence[Stmt], form: KernelForm) -> str:
    """Statements that stand in one place, split. Raises _Unfit."""
    found = _Writer(form).statements(parts, "")
    return found[0] if len(found) == 1 else f"{{ {' '.join(found)} }}"


class _Writer:
    """Writes statements in step. ``active``: the variable that says whether a lane takes part; '' where all do."""

    def __init__(self, form: KernelForm) -> None:
        inside = [s for s in walk_stmts(form.body) if isinstance(s, Declare)]
        self._types: dict[str, set[str]] = {}
        for name, type_ in [(p.name, p.type) for p in form.params] + [(s.name, s.type) for s in inside]:
            self._types.setdefault(name, set()).add(_plain(type_))
        self._shared = {s.name for s in inside if not s.dims and {"__shared__", "static"} & set(s.qualifiers)}
        self._conditions = 0

    def statements(self, stmts: Sequence[Stmt], active: str) -> list[str]:
        found: list[str] = []
        for s in stmts:
            match s:
                case Assign():
                    found += [text for part in assignments(s) for text in self._assign(part, active)]
                case If(test, then, ()):
                    found += self._if(test, then, active)
                case Declare(type_, name, value, (), ()) if active and value is not None and "*" not in type_:
                    found += [f"{self._type(Name(name))} {name}{{}};", f"if ({active}) {name} = {self._text(value)};"]
                case Comment():
                    pass
                case _:
                    raise _Unfit
        return found

    def _if(self, test: Expr, then: Sequence[Stmt], active: str) -> list[str]:
        self._conditions += 1
        name = "fsr_active" if self._conditions == 1 else f"fsr_active_{self._conditions}"
        both = test if not active else Binary("&&", Name(active), test)
        return [f"const bool {name} = {self._text(both)};", *self.statements(then, name)]

    def _assign(self, s: Assign, active: str) -> list[str]:
        where = f"if ({active}) " if active else ""
        if isinstance(s.target, Name) and s.target.text not in self._shared:
            return [f"{where}{s.target.text} {s.op} {self._text(s.value)};"]
        if not is_element(s.target):
            raise _Unfit
        target = self._text(s.target)
        if s.op == "=" and not _reads(s.value):
            return [_SYNC, f"{where}{target} = {self._text(s.value)};", _SYNC]
        value = self._text(s.value if s.op == "=" else Binary(s.op[:-1], s.target, s.value))
        read = f"{self._type(s.target)} fsr_value{{}}; {where}fsr_value = {value};"
        read = read if active else f"const auto fsr_value = {value};"
        return [f"{{ {read} {_SYNC} {where}{target} = fsr_value; {_SYNC} }}"]

    def _type(self, target: Expr) -> str:
        """The type of an element. Raises _Unfit where it is declared elsewhere."""
        match list(self._types.get(base_name(target) or "", ())):
            case [plain] if plain and plain != "auto" and "&" not in plain:
                return plain
        raise _Unfit

    @staticmethod
    def _text(e: Expr) -> str:
        if any(isinstance(x, OpaqueExpr) for x in walk_expr(e)):
            raise _Unfit
        return emit_expr(e)


def _plain(type_: str) -> str:
    """The type of the elements that a pointer or an array of a type has."""
    words = type_.replace("*", " ").split()
    return " ".join(w for w in words if w not in ("volatile", "const", "__restrict__"))


def _reads(e: Expr) -> bool:
    """Whether an expression reads memory, as far as one sees."""
    return not all(isinstance(x, Name | Literal | Binary | Unary) and not is_element(x) for x in walk_expr(e))


def _edited(source: str, read: str, edits: Mapping[Unit, tuple[Parts, str]]) -> InStep | None:
    """The text with statements written anew, line for line; None where a place does not hold the statement that was
    read there, as behind a macro that was written out. ``read``: the text as it was read, byte for byte as long."""
    data, seen = source.encode(), read.encode()
    ordered = sorted(edits.items(), key=lambda edit: edit[0].span, reverse=True)
    if any(first.span[1] > later.span[0] for (later, _), (first, _) in pairwise(ordered)):
        return None
    lines = set[int]()
    for unit, (parts, text) in ordered:
        start, end = unit.span
        if (parts, text) == _AROUND:
            lines |= {data.count(b"\n", 0, at) + 1 for at in (start, end)}
            data = b"%s{ %s %s %s }%s" % (data[:start], _SYNC.encode(), data[start:end], _SYNC.encode(), data[end:])
            continue
        if statements_of(seen[start:end].decode()) != parts:
            return None
        lines.add(data.count(b"\n", 0, start) + 1)
        data = data[:start] + (text + "\n" * data.count(b"\n", start, end)).encode() + data[end:]
    return InStep(data.decode(), tuple(sorted(lines)))
