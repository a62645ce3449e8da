"""Arguments that the contract fixes, as numbers: partial evaluation of a kernel for what its callers always pass.

A compiler that knows the length of a filter keeps its taps in registers, divides by multiplying, and drops the branches
of other cases. A launcher asks for the promised values and runs the original on any others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from fsr.analysis.instances import value_of
from fsr.analysis.types import is_integer, resolved
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, names
from fsr.records import Candidate, Role, ScalarArgument
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Declare,
    Expr,
    For,
    Literal,
    Name,
    Param,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import (
    Block,
    blocks_of,
    contains_opaque,
    names_assigned,
    names_in,
    opaque_names,
    variables,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_GAINS = {True: 1.2, False: 1.02}  # where a loop's length or a divisor becomes known
_WHOLE_GAIN = 1.3
_MOST_TURNS = 128
_MOST_STATEMENTS = 2000  # that unrolling may make, so that compiling stays short
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class FixedValues:
    """Numbers in place of a kernel's integer arguments that are always the same; ``loops``: whether those of constant
    length are unrolled whole, too."""

    name: str = "fixed-values"
    aims_at: frozenset[str] = frozenset(["instructions", "latency", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels that have such arguments."""
        for target in targets(subject):
            numbers = _numbers(target)
            if not numbers:
                continue
            body = _with(target, numbers)
            gain = _GAINS[counts(target.kernel.body, frozenset(numbers))]
            yield Move(self.name, target.region, (("loops", "kept"),), gain)
            if unrolled(body, target) != body:
                yield Move(self.name, target.region, (("loops", "whole"),), _WHOLE_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the numbers."""
        target = target_of(subject, move)
        body = _with(target, _numbers(target))
        if move.param("loops") == "whole":
            body = unrolled(body, target)
        return rewritten(target, move, replace(target.kernel, body=body))


# ---------------------------------------------------------------- numbers


def _numbers(target: Target) -> dict[str, Expr]:
    """The integer parameters that are read and always hold one number, with that number as an expression of their
    type."""
    body = target.kernel.body
    own = names_assigned(body) | set(variables(body)) | reached_by_macros(target.source)
    if contains_opaque(body):
        own |= {n for s in walk_stmts(body) for n in opaque_names(getattr(s, "text", ""))}
    read = {n for e in walk_exprs(body) for n in names_in(e)}
    found = dict[str, Expr]()
    for param in target.kernel.params:
        value = None if param.is_pointer or "&" in param.type else _value(target, param)
        if value is not None and param.name in read and param.name not in own:
            number = typed(param, value, target)
            if number is not None:
                found[param.name] = number
    return found


def _value(target: Target, param: Param) -> int | None:
    """The one number that every launch passes for a parameter."""
    given = target.launch.args[target.kernel.params.index(param)]
    if isinstance(given, ScalarArgument):
        return always(target.contract, given.value)
    argument = target.argument(param.name)
    if argument is None or argument.role is not Role.SCALAR:
        return None
    return always(target.contract, argument.value or argument.name)


def always(contract: Contract, text: str) -> int | None:
    """The value of a size expression in which no size may vary; None for others."""
    fixed = {s.name: s.minimum for s in contract.sizes if s.minimum == s.maximum}
    if not names(text) <= fixed.keys():
        return None
    try:
        return evaluate_int(text, fixed)
    except (ContractError, ValueError):  # a number with a fraction, say
        return None


def typed(param: Param, value: int, target: Target) -> Expr | None:
    """A number of a parameter's type; None for types that are no integers."""
    type_ = resolved(param.type.removeprefix("const "), target.aliases)
    if type_ == "bool" and value in (0, 1):
        return Literal("true" if value else "false")
    if not is_integer(type_):
        return None
    literal: Expr = Literal(str(abs(value)))
    if value < 0:
        literal = Unary("-", literal)
    own = param.type.removeprefix("const ")
    scoped = re.search(rf"\benum\s+(class|struct)\s+{re.escape(own.rpartition('::')[2])}\b", target.source)
    plain = type_ == "int" and _INT_MIN < value <= _INT_MAX and scoped is None  # others are compared with no number
    return literal if plain else Cast(own, literal)


def _with(target: Target, numbers: Mapping[str, Expr]) -> Block:
    return substitute(target.kernel.body, numbers)


def counts(body: Block, numbers: frozenset[str]) -> bool:
    """Whether one of them says how long a loop is, or what is divided by."""
    heads = (e for s in walk_stmts(body) if isinstance(s, For | While) for e in _head(s))
    divisors = (e.right for e in walk_exprs(body) if isinstance(e, Binary) and e.op in ("/", "%"))
    return any(names_in(e) & numbers for e in (*heads, *divisors))


def _head(s: For | While) -> tuple[Expr, ...]:
    return (s.start, s.bound, s.step) if isinstance(s, For) else (s.test,)


# ---------------------------------------------------------------- loops


def unrolled(body: Block, target: Target) -> Block:
    """The statements with a pragma on every loop of constant length that has none, where that makes not too many."""
    found = _Counted(dict(target.constants))
    if found.statements(body, found.constants) > _MOST_STATEMENTS:
        return body
    return _marked(body, {n for n, constant in found.loops.items() if constant})


def _marked(body: Block, chosen: Set[int]) -> Block:
    return tuple(_with_pragma(s, chosen) for s in body)


def _with_pragma(s: Stmt, chosen: Set[int]) -> Stmt:
    new = with_blocks(s, lambda block: _marked(block, chosen))
    if isinstance(new, For | While) and not new.pragmas and id(s) in chosen:
        return replace(new, pragmas=("#pragma unroll",))
    return new


class _Counted:
    """How many statements unrolling makes. ``loops``: by the identity of a loop, whether it had a constant length
    wherever it was come to."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.constants, self.loops = constants, dict[int, bool]()

    def statements(self, body: Block, known: Mapping[str, int]) -> int:
        """Of some statements; more than _MOST_STATEMENTS ends the count."""
        made = 0
        for s in body:
            made += 1
            turns = self._turns(s, known)
            if turns is not None:
                loop, inner, ways = turns
                self.loops[id(loop)] = self.loops.get(id(loop), True)
                for way in ways:
                    made += self.statements(inner, way)
                    if made > _MOST_STATEMENTS:
                        return made
                continue
            if isinstance(s, For | While):
                self.loops[id(s)] = False
            changed = names_assigned((s,)) | set(variables((s,)))
            rest = {n: v for n, v in known.items() if n not in changed}
            made += sum(self.statements(block, rest) for block in blocks_of(s))
            if made > _MOST_STATEMENTS:
                return made
        return made

    def _turns(self, s: Stmt, known: Mapping[str, int]) -> tuple[Stmt, Block, list[Mapping[str, int]]] | None:
        """A loop of constant length, what it goes through, and what is known in each turn."""
        match s:
            case For(_, var, start, relation, bound, step, body):
                first, test = value_of(start, known), Binary(relation, Name(var), bound)
                return self._run(s, (body, var, first, test, Binary("+", Name(var), step)), known)
            case Scope(
                (Declare(_, var, Literal() | Binary() | Name() as start, ()), While(test, (*body, last)) as loop)
            ):
                match last:
                    case Assign(Name(name), "=", value) if name == var:
                        after = value
                    case Assign(Name(name), op, value) if name == var:
                        after = Binary(op[:-1], Name(var), value)
                    case _:
                        return None
                return self._run(loop, (tuple(body), var, value_of(start, known), test, after), known)
        return None

    def _run(
        self, loop: Stmt, parts: tuple[Block, str, int | None, Expr, Expr], known: Mapping[str, int]
    ) -> tuple[Stmt, Block, list[Mapping[str, int]]] | None:
        body, var, at, test, after = parts
        changed = names_assigned(body) | set(variables(body))
        if at is None or var in changed:
            return None
        base, ways = {n: v for n, v in known.items() if n not in changed}, list[Mapping[str, int]]()
        while at is not None and (holds := value_of(test, {**base, var: at})):
            ways.append({**base, var: at})
            if len(ways) > _MOST_TURNS:
                return None
            at = value_of(after, {**base, var: at})
        return None if at is None or holds is None else (loop, body, ways)
