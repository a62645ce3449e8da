"""reciprocal: several divisions by one number become multiplications by 1 over it, which is found once.

No compiler does it, since a quotient may then be off by one more rounding. Those of a loop that does not change the
divisor cost one division in front of it; those of neighbouring statements (``x / n, y / n, z / n``) share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.definitions import reads_memory
from fsr.analysis.types import DOUBLE, FLOAT, INT, aliases, type_of
from fsr.records import Candidate
from fsr.source.form import Assign, Binary, Call, Declare, Expr, For, Literal, Name, Stmt
from fsr.source.mapping import map_stmts, replace_stmt, with_blocks
from fsr.source.references import given_by_reference
from fsr.source.walk import Block, fresh, loop_regions, names_in, names_written, walk_exprs, walk_stmts
from fsr.transform.details.fast_math import has_exact_results
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_LOOP_GAIN, _SHARED_GAIN = 1.06, 1.08
_TYPES = {FLOAT: ("float", "1.0f"), DOUBLE: ("double", "1.0")}


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """Divisions by what stays the same: in a loop, or in a kernel's statements."""

    name: str = "reciprocal"
    aims_at: frozenset[str] = frozenset(["compute", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Loops with such a division, and kernels with two; none where results are to be exact."""
        if has_exact_results(subject.contract):
            return
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                if _of_loop(target, loop) is not None:
                    yield Move(self.name, region_in(target, region), (), _LOOP_GAIN)
            if _Sharing(target).of(target.kernel.body) != target.kernel.body:
                yield Move(self.name, target.region, (), _SHARED_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the reciprocals."""
        target = target_of(subject, move)
        body = target.kernel.body
        if part_of(move).startswith("loop:"):
            loop = loop_regions(target.kernel)[part_of(move)]
            divisor = _of_loop(target, loop)
            assert divisor is not None
            inverse, inner = _Sharing(target).multiplied(loop.body, divisor)
            body = replace_stmt(body, loop, (inverse, replace(loop, body=inner)))
        else:
            body = _Sharing(target).of(body)
        return rewritten(target, move, replace(target.kernel, body=body))


def _of_loop(target: Target, loop: For) -> Expr | None:
    """What the first division of the loop divides by that the loop does not change."""
    changing = _changed(target, loop)
    return next((d for d in _Divisions(target).of(loop.body) if not names_in(d) & changing), None)


class _Divisions:
    """Divisions of floating numbers whose divisor costs nothing to find earlier."""

    def __init__(self, target: Target) -> None:
        self.target, self.names = target, aliases(target.source)

    def of(self, stmts: Sequence[Stmt]) -> list[Expr]:
        """What they divide by, in order, each as often as it is divided by."""
        found = list[Expr]()
        for s in walk_stmts(tuple(stmts)):
            if isinstance(s, Assign) and s.op == "/=" and self.fits(s.target, s.value):
                found.append(s.value)
        for e in walk_exprs(tuple(stmts)):
            quotient = _quotient(e)
            if quotient is not None and self.fits(*quotient):
                found.append(quotient[1])
        return found

    def fits(self, left: Expr, right: Expr) -> bool:
        """Whether a product with the reciprocal is as good as the quotient, but for a rounding."""
        if isinstance(right, Literal) or reads_memory(right) or not self.target.functions.calls_builtins(right):
            return False
        own = self.type(right)
        return own in _TYPES and self.type(left) in ((FLOAT, INT) if own == FLOAT else (DOUBLE, FLOAT, INT))

    def type(self, e: Expr) -> str | None:
        """See type_of."""
        return type_of(e, self.target.known.types, self.names)


@dataclass
class _Sharing:
    """Writes reciprocals into blocks, with names that are free."""

    target: Target
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.divisions = _Divisions(self.target)
        self.taken |= self.target.names

    def of(self, block: Block) -> Block:
        """The statements, in which neighbours that divide by the same divide once; and those nested in them."""
        done, rest = list[Stmt](), list(block)
        while rest:
            spans = ((d, self._span(rest, d)) for d in dict.fromkeys(self.divisions.of(rest[:1])))
            shared = next(((d, n) for d, n in spans if self.divisions.of(rest[:n]).count(d) > 1), None)
            if shared is None:
                done.append(with_blocks(rest.pop(0), self.of))
                continue
            divisor, span = shared
            inverse, changed = self.multiplied(tuple(rest[:span]), divisor)
            done.append(inverse)
            rest[:span] = changed
        return tuple(done)

    def _span(self, rest: Sequence[Stmt], divisor: Expr) -> int:
        """How many statements leave a divisor as it is."""
        named = names_in(divisor)
        return next((n for n, s in enumerate(rest) if named & _changed(self.target, s)), len(rest))

    def multiplied(self, stmts: Block, divisor: Expr) -> tuple[Declare, Block]:
        """The declaration of a divisor's reciprocal, and statements that multiply by it."""
        name = fresh("inverse", self.taken)
        self.taken.add(name)
        type_, one = _TYPES[str(self.divisions.type(divisor))]
        inverse = Declare(f"const {type_}", name, Binary("/", Literal(one), divisor))
        return inverse, map_stmts(stmts, self._assigned(divisor, name), self._product(divisor, name))

    def _product(self, divisor: Expr, name: str) -> Callable[[Expr], Expr]:
        def change(e: Expr) -> Expr:
            quotient = _quotient(e)
            if quotient is not None and quotient[1] == divisor and self.divisions.fits(*quotient):
                return Binary("*", quotient[0], Name(name))
            return e

        return change

    def _assigned(self, divisor: Expr, name: str) -> Callable[[Stmt], Stmt]:
        def change(s: Stmt) -> Stmt:
            if isinstance(s, Assign) and s.op == "/=" and s.value == divisor and self.divisions.fits(s.target, divisor):
                return replace(s, op="*=", value=Name(name))
            return s

        return change


def _quotient(e: Expr) -> tuple[Expr, Expr] | None:
    """What is divided, and by what, in either spelling; None for anything else."""
    match e:
        case Binary("/", left, right) | Call(Name("__fdividef"), (left, right)):
            return left, right
    return None


def _changed(target: Target, s: Stmt) -> frozenset[str]:
    declared = frozenset(t.name for t in walk_stmts((s,)) if isinstance(t, Declare))
    return names_written((s,)) | declared | given_by_reference((s,), target.kernel.by_reference)
