"""specialised-values: a way of its own for the numbers that are timed, in which they stand as numbers.

A library's kernel takes any number of dimensions, bins or channels, and is called with three or with sixty-four: as
arguments they cost a division each, and loops that no compiler unrolls. Where a launch passes just these numbers it
goes through a copy that knows them; any others take the original's way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Candidate
from fsr.source.arrays import shared_in_front
from fsr.source.form import Binary, Comment, Expr, For, If, Name, Param, While, conjunction
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import substitute
from fsr.source.walk import (
    Block,
    contains_opaque,
    names_assigned,
    names_in,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.details.fixed_values import always, typed, unrolled
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_MOST = 1024  # a larger number is a length that data has, no shape that a program is written for
_GAINS = {True: 1.25, False: 1.05}  # where a divisor becomes known
_WHOLE_GAIN = 1.3


class SpecialisedValues:
    """A copy of a kernel's work for the timed lengths of its loops and its divisors; ``loops``: whether those of known
    length are unrolled whole, too."""

    name = "specialised-values"
    aims_at = frozenset({"instructions", "latency", "compute"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels that loop so often, or divide by it."""
        for target in targets(subject):
            numbers = _numbers(target)
            memory = shared_in_front(target.kernel.body)
            if not numbers or memory is None or contains_opaque(target.kernel.body):
                continue
            divisors = {n for e in _divisors(target) for n in names_in(e)}
            yield Move(self.name, target.region, (("loops", "kept"),), _GAINS[bool(divisors & numbers.keys())])
            body = substitute(target.kernel.body, numbers)
            if unrolled(body, target) != body:
                yield Move(self.name, target.region, (("loops", "whole"),), _WHOLE_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with both ways."""
        target = target_of(subject, move)
        numbers, memory = _numbers(target), shared_in_front(target.kernel.body)
        assert memory is not None
        rest = tuple(s for s in target.kernel.body if not any(s is one for one in memory))
        own = substitute(rest, numbers)
        if move.param("loops") == "whole":
            own = unrolled(own, target)
        test = conjunction([Binary("==", Name(name), number) for name, number in numbers.items()])
        assert test is not None
        body: Block = (*memory, Comment("// what is timed; anything else goes the way of before"), If(test, own, rest))
        return rewritten(target, move, replace(target.kernel, body=body))


def _numbers(target: Target) -> Mapping[str, Expr]:
    """The integer parameters that say how often a loop goes round, or what is divided by, as the one number that they
    have in what is timed; none that always have it, which fixed-values is for."""
    body = target.kernel.body
    own = names_assigned(body) | set(variables(body)) | reached_by_macros(target.source)
    asked, tests = _asked(target), (e for s in body if isinstance(s, If) for e in walk_expr(s.test))
    told = {e.left.text for e in tests if isinstance(e, Binary) and e.op == "==" and isinstance(e.left, Name)}
    found = dict[str, Expr]()
    for param in target.kernel.params:
        if param.is_pointer or "&" in param.type or param.name in own or param.name not in asked:
            continue
        value = _timed(target, param)
        number = None if value is None else typed(param, value, target)
        if number is not None and param.name not in told:  # once is enough
            found[param.name] = number
    return found


def _asked(target: Target) -> frozenset[str]:
    """The names that heads of loops and divisors are made of."""
    body = target.kernel.body
    heads = [e for s in walk_stmts(body) if isinstance(s, For) for e in (s.bound, s.step)]
    heads += [s.test for s in walk_stmts(body) if isinstance(s, While)]
    return frozenset(n for e in [*heads, *_divisors(target)] for n in names_in(target.known.expand(e)))


def _divisors(target: Target) -> list[Expr]:
    return [e.right for e in walk_exprs(target.kernel.body) if isinstance(e, Binary) and e.op in ("/", "%")]


def _timed(target: Target, param: Param) -> int | None:
    """The one small number that is passed for a parameter wherever it is timed, and is not always passed."""
    text = target.size_text(Name(param.name))
    if text is None:
        return None
    values = _values(target.contract, text)
    one = next(iter(values)) if len(values) == 1 else None
    return one if one is not None and 0 < one <= _MOST and always(target.contract, text) is None else None


def _values(contract: Contract, text: str) -> set[int]:
    try:
        return {evaluate_int(text, sizes) for sizes in contract.timed_sizes()}
    except (ContractError, ValueError):
        return set()
