"""gather-factors: a product of quotients and exponentials has one division, and one exponential of a sum.

``exp(a / s) * exp(b / s) / (s * c)`` is ``exp((a + b) / s) / (s * c)``, ``a / b * (c / d)`` is ``a * c / (b * d)``: no
compiler does it, since results may be off by some roundings more. Weights of several dimensions (kernel densities,
bilateral filters, likelihoods) are written so. What a variable holds that is used once, as a factor, counts as one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from fsr.analysis.definitions import reads_memory
from fsr.analysis.returned import written_out
from fsr.analysis.types import DOUBLE, FLOAT, aliases, bare, type_of
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    If,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
)
from fsr.source.macros import macros
from fsr.source.mapping import rewrite, substitute, with_blocks, with_exprs
from fsr.source.walk import Block, blocks_of, names_in, names_written, nodes, variables
from fsr.transform.details.fast_math import has_exact_results
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_GAIN, _MOST_GAIN = 1.08, 1.6
_MOST_USES = 4  # of a variable, all in one statement
_SAVED_GAIN = 0.06  # for each division or exponential that is saved
# Of which base each is a power; that of pow is its first argument, where it is a number.
_EXPONENTIALS = {
    "exp": "e", "expf": "e", "__expf": "e", "exp2": "2", "exp2f": "2", "exp10": "10", "exp10f": "10", "__exp10f": "10",
}  # fmt: skip
_POWERS = ("pow", "powf", "__powf")
_ONE = {FLOAT: Literal("1.0f"), DOUBLE: Literal("1.0")}


@dataclass(frozen=True, slots=True)
class GatherFactors:
    """All products of a kernel."""

    name: str = "gather-factors"
    aims_at: frozenset[str] = frozenset(["compute", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for each kernel with such a product; none where results are to be exact."""
        if has_exact_results(subject.contract):
            return
        for target in targets(subject):
            gathered = _gathered(target)
            if gathered.saved:
                gain = min(_GAIN + _SAVED_GAIN * gathered.saved, _MOST_GAIN)
                yield Move(self.name, target.region, (), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the products."""
        target = target_of(subject, move)
        return rewritten(target, move, replace(target.kernel, body=_gathered(target).body))


def _gathered(target: Target) -> _Gathering:
    """The kernel's products, of functions that merely return one too; as they are where they save as much."""
    found = _Gathering(target, target.kernel.body)
    plain = written_out(target.kernel, target.source)
    other = found if plain.body == target.kernel.body else _Gathering(target, plain.body)
    return other if other.saved > found.saved else found


@dataclass(frozen=True)
class _Product:
    """``above`` over ``below``, with the sign; ``divisions``: by anything but a number, that were written."""

    above: tuple[Expr, ...] = ()
    below: tuple[Expr, ...] = ()
    negative: bool = False
    divisions: int = 0

    def times(self, other: _Product, *, over: bool) -> _Product:
        """The product with another, or the quotient."""
        above, below = (other.below, other.above) if over else (other.above, other.below)
        new = int(over and not all(isinstance(x, Literal) for x in other.above))
        divisions = self.divisions + other.divisions + new
        return _Product((*self.above, *above), (*self.below, *below), self.negative != other.negative, divisions)


@dataclass
class _Gathering:
    """The statements with products gathered; ``saved``: divisions and exponentials."""

    target: Target
    start: Block
    saved: int = 0
    body: Block = field(init=False)

    def __post_init__(self) -> None:
        self._names = aliases(self.target.source)
        numbers = (m for m in macros(self.target.source) if m.params is None and re.fullmatch(r"[\d.]\S*", m.body))
        self._types = {m.name: type_of(Literal(m.body), {}, {}) or "" for m in numbers} | dict(self.target.known.types)
        self._types |= {s.name: s.type for s in nodes(self.start) if isinstance(s, Declare) and not s.dims}
        self._uses = Counter(n.text for n in nodes(self.start) if isinstance(n, Name))
        opaque = any(isinstance(n, OpaqueExpr | OpaqueStmt) for n in nodes(self.start))
        self.body = self._block(self.start if opaque else self._joined(self.start))

    def _kind(self, e: Expr) -> str | None:
        return type_of(e, self._types, self._names)

    # ------------------------------------------------------------ statements

    def _block(self, block: Block) -> Block:
        return tuple(with_blocks(with_exprs(s, self._changed), self._block) for s in block)

    def _changed(self, e: Expr) -> Expr:
        def change(x: Expr) -> Expr | None:
            if not isinstance(x, Binary) or x.op not in "*/" or self._kind(x) not in _ONE:
                return None
            return self._simpler(x)

        return rewrite(e, change)

    def _joined(self, block: Block) -> Block:
        """The statements with variables that are used in one statement, as factors, written out there."""
        rest = [with_blocks(s, self._joined) for s in block]
        done = list[Stmt]()
        while rest:
            s = rest.pop(0)
            value = self._factor(s) if isinstance(s, Declare) else None
            at = None if value is None or not isinstance(s, Declare) else self._use(s.name, value, rest)
            if at is None or value is None or not isinstance(s, Declare):
                done.append(s)
            else:
                rest[at] = substitute(rest[at], {s.name: value})
        return tuple(done)

    def _factor(self, s: Declare) -> Expr | None:
        """The value of a variable, where it is a quotient or has an exponential as factor; of one that is used several
        times an exponential alone, which is then one of several."""
        kind = None if s.init is None else self._kind(s.init)
        if s.init is None or kind not in _ONE or not 0 < self._uses[s.name] <= _MOST_USES or s.dims or s.qualifiers:
            return None
        product = self._product(s.init, kind) if bare(s.type) == kind else None
        if product is None or (self._uses[s.name] > 1 and not (_base(s.init) and not product.divisions)):
            return None
        return s.init if product.divisions or any(map(_base, product.above)) else None

    def _use(self, name: str, value: Expr, rest: Sequence[Stmt]) -> int | None:
        """Which of the statements has a variable as a factor; None where its value may be another there."""
        reads = reads_memory(value)
        for at, s in enumerate(rest):
            if any(isinstance(n, Name) and n.text == name for n in nodes(s)):
                return at if self._multiplies(name, value, s) else None
            if (names_written((s,)) | frozenset(variables((s,)))) & names_in(value):
                return None
            if reads and not (isinstance(s, Declare) and self._computes(s)):
                return None
        return None

    def _multiplies(self, name: str, value: Expr, s: Stmt) -> bool:
        """Whether a statement, or one in the only branch of it that does, has all uses of a variable, as factors."""
        if isinstance(s, If):
            inside = [b for b in blocks_of(s) if any(isinstance(n, Name) and n.text == name for n in nodes(b))]
            return name not in names_in(s.test) and len(inside) == 1 and self._use(name, value, inside[0]) is not None
        return isinstance(s, Declare | Assign | ExprStmt) and _factors(s)[name] == self._uses[name]

    def _computes(self, s: Stmt) -> bool:
        """Whether all that a statement calls only computes: an atomic may change what is read behind it."""
        return all(self.target.functions.calls_builtins(n) for n in nodes(s) if isinstance(n, Call))

    # ------------------------------------------------------------ products

    def _simpler(self, e: Binary) -> Expr | None:
        """The product; None where that saves nothing."""
        kind = self._kind(e)
        product = self._product(e, kind) if kind is not None else None
        if product is None or kind is None:
            return None
        powers: dict[str, list[tuple[Call, bool]]] = {}
        for factors, minus in ((product.above, False), (product.below, True)):
            for x in factors:
                if isinstance(x, Call) and (base := _base(x)):
                    powers.setdefault(base, []).append((x, minus))
        others = [x for x in product.above if not _base(x)]
        below = [x for x in product.below if not _base(x)]
        saved = sum(len(of_one) - 1 for of_one in powers.values()) + max(product.divisions - bool(below), 0)
        if all(len(of_one) < 2 for of_one in powers.values()) and product.divisions < 2:
            return None
        self.saved += saved
        parts = [self._changed(x) for x in others]
        for of_one in reversed(powers.values()):
            first = of_one[0][0]
            whole = self._sum([(x.args[-1], minus) for x, minus in of_one])
            parts.insert(0, replace(first, args=(*first.args[:-1], whole)))
        found = _multiplied(parts) if parts else _ONE[kind]
        if below:
            found = Binary("/", found, _multiplied([self._changed(x) for x in below]))
        return Unary("-", found) if product.negative else found

    def _product(self, e: Expr, kind: str) -> _Product | None:
        """An expression as a product of factors of one type, and of numbers; None where one is of another."""
        match e:
            case Binary("*" | "/" as op, left, right) if self._kind(e) == kind:
                a, b = self._product(left, kind), self._product(right, kind)
                return None if a is None or b is None else a.times(b, over=op == "/")
            case Unary("-", operand) if self._kind(operand) == kind:
                inner = self._product(operand, kind)
                return None if inner is None else replace(inner, negative=not inner.negative)
            case Cast(type_, operand) if type_ == kind == self._kind(operand):
                return self._product(operand, kind)
        plain = self._kind(e) == kind or (isinstance(e, Literal) and e.text.isdigit())
        return _Product((e,)) if plain and self.target.functions.calls_builtins(e) else None

    def _sum(self, exponents: Sequence[tuple[Expr, bool]]) -> Expr:
        """The sum of exponents, of which some are taken away; those over the same are one quotient."""
        groups: dict[tuple[Expr, ...], list[tuple[Expr, bool]]] = {}
        for e, minus in exponents:
            kind = self._kind(e)
            product = None if kind not in _ONE else self._product(e, str(kind))
            if product is None or not product.above:
                groups.setdefault((), []).append((e, minus))
            else:
                groups.setdefault(product.below, []).append((_multiplied(product.above), minus != product.negative))
        terms = list[tuple[Expr, bool]]()
        for below, members in groups.items():
            taken = all(minus for _, minus in members)
            added = _added([(e, minus and not taken) for e, minus in members])
            terms.append((Binary("/", added, _multiplied(below)) if below else added, taken))
        return _added(terms)


def _base(e: Expr) -> str:
    """The base of which an expression is a power, where its exponent may be anything; "" for all others."""
    match e:
        case Call(Name(name), (_,)):
            return _EXPONENTIALS.get(name, "")
        case Call(Name(name), (Literal(text), _)) if name in _POWERS:
            number = re.fullmatch(r"(\d+\.?\d*|\.\d+)[fF]?", text)
            return f"{float(number[1]):g}" if number and float(number[1]) > 0 else ""
    return ""


def _multiplied(factors: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Binary("*", a, b), factors)


def _added(terms: Sequence[tuple[Expr, bool]]) -> Expr:
    """A sum; what is taken away comes last."""
    added, taken = [e for e, minus in terms if not minus], [e for e, minus in terms if minus]
    if not added:
        return Unary("-", reduce(lambda a, b: Binary("+", a, b), taken))
    return reduce(lambda a, b: Binary("-", a, b), taken, reduce(lambda a, b: Binary("+", a, b), added))


def _factors(s: Declare | Assign | ExprStmt) -> Counter[str]:
    """How often each name is a factor of a product in a statement."""
    products = (n for n in nodes(s) if isinstance(n, Binary) and n.op in "*/")
    return Counter(side.text for p in products for side in (p.left, p.right) if isinstance(side, Name))
