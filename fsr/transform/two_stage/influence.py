"""Which variables of some statements depend on which, and which are calculated from which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, For, If, Jump, Name, Stmt, Ternary, Unary, While
from fsr.source.mapping import map_expr
from fsr.source.walk import Block, blocks_of, names_in, subexprs, walk_stmts

SELECTING = frozenset(["min", "max", "fmin", "fmax", "fminf", "fmaxf", "std::min", "std::max"])
_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "<<", ">>", "^"])
_KEEPS = frozenset(["&=", "|="])  # the same again when it is given the same again

Names = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Given:
    """A variable gets a value. ``op``: as in an assignment, '=' for a declaration; ``tests``: what decides whether it
    does."""

    name: str
    op: str
    value: Expr
    tests: tuple[Expr, ...]

    @property
    def names(self) -> frozenset[str]:
        """What the value mentions, the variable itself where it is changed by ``+=`` and the like."""
        return names_in(self.value) | self._kept

    @property
    def valued(self) -> frozenset[str]:
        """The same without what decides between values."""
        return names_in(without_tests(self.value)) | self._kept

    @property
    def _kept(self) -> frozenset[str]:
        return frozenset() if self.op == "=" else frozenset([self.name])


def given(stmts: Block) -> tuple[Given, ...]:
    """Every value that a variable is given. What follows a ``continue`` is decided by the tests in front of that."""
    jumping = tuple(
        s.test for s in walk_stmts(stmts) if isinstance(s, If) and any(isinstance(x, Jump) for x in walk_stmts((s,)))
    )
    return tuple(_given(stmts, jumping))


def _given(stmts: Block, tests: tuple[Expr, ...]) -> Iterator[Given]:
    last: Stmt | None = None
    for s in stmts:
        inner = tests
        match s:
            case Assign(Name(name), op, value):
                if isinstance(last, Assign) and (last.target, last.op) == (value, "="):
                    value = last.value  # ``a = b = x``
                yield Given(name, op, value, tests)
            case Declare(name=name, init=init) if init is not None:
                yield Given(name, "=", init, tests)
            case For():
                yield from (Given(s.var, "=", e, tests) for e in (s.start, s.step, s.bound))
                inner = (*tests, s.bound)
            case If() | While():
                inner = (*tests, s.test)
        last = s
        for block in blocks_of(s):
            yield from _given(block, inner)


def values_of(found: tuple[Given, ...]) -> Names:
    """By variable, all names that its values are made of, by way of others too."""
    return _closed({g.name: frozenset() for g in found}, ((g.name, g.valued) for g in found))


def influences(found: tuple[Given, ...]) -> Names:
    """The same, with the names that decide which value it gets, or whether."""
    told = ((g.name, g.names.union(*map(names_in, g.tests))) for g in found)
    return _closed({g.name: frozenset() for g in found}, told)


def calculated(found: tuple[Given, ...]) -> Names:
    """By variable, all names that it is calculated from: not those that it is merely a copy, or an extreme, of."""
    values, direct = values_of(found), list[tuple[str, frozenset[str]]]()
    for g in found:
        own = frozenset[str]() if g.op == "=" or g.op in _KEEPS else g.valued
        for part in _calculations(g.value):
            own |= names_in(without_tests(part))
        direct.append((g.name, own.union(*(values.get(n, frozenset()) for n in own))))
    copies = _closed({g.name: frozenset() for g in found}, [(g.name, frozenset(_copied(g.value))) for g in found],
                     follow=False)  # fmt: skip
    result = dict(_closed({g.name: frozenset() for g in found}, direct, follow=False))
    while True:
        more = {n: result[n].union(*(result.get(c, frozenset()) for c in copies[n])) for n in result}
        if more == result:
            return result
        result = more


def without_tests(e: Expr) -> Expr:
    """An expression of the same names but for those that only decide between two values."""
    return map_expr(e, lambda x: Binary("+", x.yes, x.no) if isinstance(x, Ternary) else x)


def _closed(first: Names, told: Iterator[tuple[str, frozenset[str]]] | list[tuple[str, frozenset[str]]], *,
            follow: bool = True) -> Names:  # fmt: skip
    result = dict(first)
    for name, names in told:
        result[name] |= names
    while follow:
        more = {n: names.union(*(result.get(x, frozenset()) for x in names)) for n, names in result.items()}
        if more == result:
            break
        result = more
    return result


def _calculations(e: Expr) -> Iterator[Expr]:
    """The parts of a value, but for tests, that are more than one of several."""
    match e:
        case Binary(op) if op in _ARITHMETIC:
            yield e
        case Unary("-" | "~"):
            yield e
        case Ternary(_, yes, no):
            yield from _calculations(yes)
            yield from _calculations(no)
        case Call() if not _selects(e):
            yield e
        case _:
            for part in subexprs(e):
                yield from _calculations(part)


def _copied(e: Expr) -> Iterator[str]:
    match e:
        case Name(text):
            yield text
        case Ternary(_, yes, no):
            yield from _copied(yes)
            yield from _copied(no)
        case Call(_, args) if _selects(e):
            for argument in args:
                yield from _copied(argument)
        case Cast(_, operand):
            yield from _copied(operand)


def _selects(e: Call) -> bool:
    """Whether a call gives one of its arguments, maybe in another type."""
    return isinstance(e.callee, Name) and (e.callee.text in SELECTING or _converts(e))


def _converts(e: Call) -> bool:
    name = e.callee.text if isinstance(e.callee, Name) and len(e.args) == 1 else "?"
    return name.split()[-1] in ("float", "double", "int", "unsigned", "long", "char", "short", "bool", "int64_t")
