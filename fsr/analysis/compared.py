"""What stands in the elements of an array, and in variables, while statements compare and exchange them.

Elements are taken for numbers in one order, of which equal ones have the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsr.analysis.early_ends import Exchanged
from fsr.analysis.instances import value_of
from fsr.analysis.types import bare
from fsr.source.form import Binary, Call, Expr, Index, KernelForm, Literal, Name, Ternary, Unary
from fsr.source.types import resolve_dtype
from fsr.source.walk import names_in, walk_expr

_MOST_NUMBER = 127  # of a variable, so that any integer type holds it
MOST_PLACES = 64  # elements, beyond which nothing is said
_MOST_PAIRS = MOST_PLACES**2  # as many as each with every other
_WHOLE = re.compile(r"\b(?:int|short|long|char|unsigned|auto|u?int\d+_t|size_t|uint|uchar|ushort|bool)\b")
_UNSIGNED = re.compile(r"\b(?:unsigned|uint\w*|size_t|uchar|ushort|ulong)\b")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What statements stand in: integers by ``known`` name, those of them that stand for the same ``everywhere`` in the
    file, its ``functions``, the ``types`` of variables around the statements, and the file's ``aliases`` of types."""

    known: Mapping[str, int]
    everywhere: Mapping[str, int]
    functions: Mapping[str, KernelForm]
    types: Mapping[str, str]
    aliases: Mapping[str, str]


class NotUnderstood(Exception):  # noqa: N818  # no error: most statements are no comparators
    pass


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least (``greatest``: the greatest) of some values; of one value both."""

    of: frozenset[int]
    greatest: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """The index at which such an extreme stands."""

    value: Extreme


@dataclass(frozen=True, slots=True)
class Pointer:
    """To an element, or as a reference (``is_place``) the element itself."""

    at: int
    is_place: bool = False


@dataclass(frozen=True, slots=True)
class Mixed:
    """The exclusive or of some values, of which exchanges without a third variable are made."""

    of: frozenset[Extreme]


Value = int | Extreme | Mixed | Where | Pointer | Exchanged | None  # None: not known
Test = tuple[Extreme, Extreme]  # the first is greater; where they are equal either may be said


class Elements:
    """The state of what is gone through: variables, and of the elements what each is taken to hold (``home``) and what
    was stored in it since."""

    def __init__(self, array: str, element: str, around: Surroundings) -> None:
        self.element, self.around, self.known, self.types = element, around, around.known, dict(around.types)
        self.typename = element  # of a template that is being gone through
        self.names: dict[str, Value] = {array: Pointer(0)}
        self.home, self.cells = dict[int, Extreme](), dict[int, Value]()
        self.pairs, self.loose, self.early, self.named = list[tuple[int, int]](), False, False, set[str]()
        self._hole: tuple[Extreme, Value] | None = None  # what is stored where an extreme stands
        self._free: int | None = None  # a place whose element is moved on alone: a copy of it stands there
        self._late = frozenset[str]()  # variables whose values depend on when a loop has ended
        self._stops: list[tuple[Mapping[str, Value], int]] = []  # what they may be there, and which element is free
        self.exits = list[tuple[int, int]]()
        self._left = False  # a loop that is being gone through
        self._next = self._steps = self._tested = self._calls = 0

    def at_home(self) -> bool:
        """Whether every element holds what it is taken to hold, and none was stored anywhere else."""
        return self._hole is None and all(self.cells[at] == value for at, value in self.home.items())

    def _fresh(self, at: int) -> Extreme:
        self._next += 1
        self.home[at] = value = Extreme(frozenset([self._next]))
        self.cells[at] = value
        return value

    def _pair(self, low: int, high: int) -> None:
        self.pairs.append((low, high))
        if len(self.pairs) > _MOST_PAIRS:
            raise NotUnderstood
        self._fresh(low)
        self._fresh(high)

    def _exchange(self) -> None:
        """Note the comparators that have been done."""
        away = [at for at, value in self.home.items() if self.cells[at] != value]
        match away, self._hole:
            case [one, other], None:
                both = _union(self.home[one], self.home[other], greatest=False)
                found = self.cells[one], self.cells[other]
                if found == (both, replace(both, greatest=True)):
                    self._pair(one, other)
                elif found == (replace(both, greatest=True), both):
                    self._pair(other, one)
            case [one], (extreme, put) if self.cells[one] == extreme and put == self.home[one]:
                places = sorted(at for at, v in self.home.items() if v.of <= extreme.of)
                if len(places) != len(extreme.of) or one not in places:
                    raise NotUnderstood
                rest = [at for at in places if at != one]
                self.pairs += [(at, one) if extreme.greatest else (one, at) for at in rest]
                self.loose, self._hole = True, None
                for at in places:
                    self._fresh(at)

    def _store(self, target: Expr, value: Value) -> None:
        if isinstance(target, Name) and not self._is_place(target.text):
            self._set(target.text, value)
            return
        if isinstance(target, Index) and isinstance(where := self.value(target.index), Where):
            if self._base(target) != 0 or self._hole is not None:
                raise NotUnderstood
            self._hole = where.value, value
            return
        at = self._place(target)
        if at is None or not isinstance(value, Extreme | Mixed):
            raise NotUnderstood
        if at != self._free:
            self._read(at)
        self.cells[at] = value

    def _set(self, name: str, value: Value) -> None:
        """Give a variable another value, if its type holds it."""
        type_ = self.types.get(name, "")
        low, high = (0 if _UNSIGNED.search(type_) else -_MOST_NUMBER), _MOST_NUMBER
        if re.search(r"\bbool\b", type_):
            low, high = 0, 1
        match value:
            case int() if not low <= value <= high or not _WHOLE.search(type_):
                raise NotUnderstood
            case Extreme() if not self._holds_elements(type_):
                raise NotUnderstood
            case Pointer() | Mixed():
                raise NotUnderstood
        self.names[name] = value

    def _is_place(self, name: str) -> bool:
        found = self.names.get(name)
        return isinstance(found, Pointer) and found.is_place

    def _base(self, e: Index) -> int | None:
        found = self.value(e.base)
        return found.at if isinstance(found, Pointer) else None

    def _read(self, at: int) -> Value:
        if not 0 <= at < MOST_PLACES or at == self._free:
            raise NotUnderstood
        return self.cells[at] if at in self.home else self._fresh(at)

    def _place(self, e: Expr) -> int | None:
        """Which element an expression is."""
        match e:
            case Name(text) if self._is_place(text):
                found = self.names[text]
                return found.at if isinstance(found, Pointer) else None
            case Index(_, index):
                base, by = self._base(e), self.value(index)
                return base + by if base is not None and isinstance(by, int) else None
            case Unary("*", operand):
                pointer = self.value(operand)
                return pointer.at if isinstance(pointer, Pointer) and not pointer.is_place else None
        return None

    def value(self, e: Expr) -> Value:
        """What an expression is."""
        number = self._integer(e)
        if number is not None:
            return number
        match e:
            case Name(text) if text in self.names and not self._is_place(text):
                if self.names[text] is None:
                    raise NotUnderstood
                return self.names[text]
            case Index(_, index) if isinstance(where := self.value(index), Where) and self._base(e) == 0:
                if self._hole is not None or not self._stands(where.value):
                    raise NotUnderstood
                return where.value
            case Unary("&", operand) if (at := self._place(operand)) is not None:
                return Pointer(at)
            case Binary("+" | "-" as op, left, right) if isinstance(base := self.value(left), Pointer):
                by = self.value(right)
                if isinstance(by, int):
                    return Pointer(base.at + (by if op == "+" else -by))
            case Ternary(test, yes, no):
                return self._either(self._compared(test), self.value(yes), self.value(no))
            case Binary("^", left, right):
                return _mixed(self.value(left), self.value(right))
            case Call(Name(text), (left, right)) if text in self._extremes():
                self._as_elements(e)
                a, b = self.value(left), self.value(right)
                if isinstance(a, Extreme) and isinstance(b, Extreme):
                    return _union(a, b, greatest="max" in text)
        at = self._place(e)
        if at is None:
            raise NotUnderstood
        return self._read(at)

    def _stands(self, extreme: Extreme) -> bool:
        """Whether all values that an extreme is one of stand in elements."""
        found = [v for at, v in self.home.items() if v.of <= extreme.of and self.cells[at] == v]
        return len(found) == len(extreme.of)

    def _extremes(self) -> frozenset[str]:
        """The functions that give the lesser or the greater of two elements as it is."""
        floats = {"float": ("f", ""), "double": ("",)}.get(self.element, ())
        names = {"min", "max", "std::min", "std::max", *(f"f{w}{end}" for w in ("min", "max") for end in floats)}
        return frozenset(names - self.around.functions.keys())

    def _is_element(self, type_: str) -> bool:
        """Whether a variable of a type holds an element as it is."""
        if type_.removeprefix("const ") in (self.element, "auto", self.typename):
            return True
        return bool(own := self._dtype(self.element)) and own == self._dtype(type_)

    def _dtype(self, type_: str) -> str:
        return resolve_dtype(bare(type_), self.around.aliases)[0] or ""

    def _holds_elements(self, type_: str) -> bool:
        """Whether a variable of a type gives back what element is put into it."""
        own, other = self._dtype(self.element), self._dtype(type_)
        if own == "float32":
            return other == "float64" or self._is_element(type_)
        return self._is_element(type_) or ("int" in own and "int" in other and _bits(own) <= _bits(other))

    def _as_elements(self, e: Expr) -> None:
        """Raise where what is compared may have become another number in a variable of another type."""
        own = self._dtype(self.element)
        for name in names_in(e):
            type_ = self.types.get(name, "")
            if isinstance(self.names.get(name), Extreme) and not self._is_element(type_) and "int" in own:
                other = self._dtype(type_)
                signed = not other.startswith("u")
                if _bits(own) >= _bits(other) or not (signed or own.startswith("u")):
                    raise NotUnderstood

    def _integer(self, e: Expr) -> int | None:
        """The value of an expression of integers; None where it is none, or might pass its type's ends."""
        names = names_in(e)
        own = {name: v for name in names & self.names.keys() if isinstance(v := self.names[name], int)}
        given = {name: self.known[name] for name in names & self.known.keys() - self.names.keys()}
        values = {**given, **own}
        found = value_of(e, values)
        if found is None:
            return None
        parts = list(walk_expr(e))
        unsigned = any(_UNSIGNED.search(self.types.get(name, "unsigned")) for name in values)
        unsigned |= any(isinstance(x, Literal) and x.text[-1:] in "uU" for x in parts)
        if unsigned and any((value_of(x, values) or 0) < 0 for x in parts):
            return None
        if not self._calls:
            self.named |= set(given)
        return found

    def _compared(self, test: Expr) -> Test:
        self._as_elements(test)
        match test:
            case Unary("!", operand):
                greater, lesser = self._compared(operand)
                return lesser, greater
            case Binary(">" | ">=" | "<" | "<=" as op, left, right) if not self._tested:
                a, b = self.value(left), self.value(right)
                if isinstance(a, Extreme) and isinstance(b, Extreme):
                    return (a, b) if op in (">", ">=") else (b, a)
        raise NotUnderstood

    def _either(self, test: Test, yes: Value, no: Value) -> Value:
        """What is ``yes`` where the first of the tested is greater, and ``no`` elsewhere."""
        if yes == no:
            return yes
        greater, lesser = test
        a, b = self._extreme_at(yes), self._extreme_at(no)
        if a is None or b is None or isinstance(yes, Extreme) != isinstance(no, Extreme):
            return None
        found = _union(a, b, greatest=a == greater) if {a, b} == {greater, lesser} else None
        if found is None or isinstance(yes, Extreme):
            return found
        return Where(found)

    def _extreme_at(self, value: Value) -> Extreme | None:
        """An extreme; of an index what stands there."""
        if isinstance(value, Where):
            return value.value
        return self.home.get(value) if isinstance(value, int) else (value if isinstance(value, Extreme) else None)


def _union(a: Extreme, b: Extreme, *, greatest: bool) -> Extreme:
    """The extreme of two; both are of the same kind, or of one value."""
    if any(len(x.of) > 1 and x.greatest != greatest for x in (a, b)):
        raise NotUnderstood
    return Extreme(a.of | b.of, greatest)


def _mixed(a: Value, b: Value) -> Value:
    """The exclusive or of two elements, or of those and others."""
    parts = [v.of if isinstance(v, Mixed) else {v} if isinstance(v, Extreme) else frozenset() for v in (a, b)]
    both = frozenset(parts[0] ^ parts[1])
    if not all(parts) or not both:
        raise NotUnderstood
    return next(iter(both)) if len(both) == 1 else Mixed(both)


def _bits(dtype: str) -> int:
    return int(re.sub(r"\D", "", dtype) or 0)
