"""specialised-values: ways of their own for the numbers that are timed, in which they stand as numbers.

A library's kernel takes any number of dimensions, bins or channels, and is called with three or with sixty-four: as
arguments they cost a division each, and loops that no compiler unrolls. Where a launch passes just these numbers it
goes through a copy that knows them; any others take the original's way. Several timed sizes with numbers of their own
have a copy each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
_MOST_OF_SEVERAL = 128  # of a number that is not the same wherever it is timed
_MOST_WAYS = 4
_GAINS = {True: 1.25, False: 1.05}  # where a divisor becomes known
_WHOLE_GAIN = 1.3

Way = Mapping[str, Expr]  # the numbers that parameters have, by name


class SpecialisedValues:
    """Copies of a kernel's work for the timed lengths of its loops and its divisors; ``loops``: whether those of known
    length are unrolled whole, too."""

    name = "specialised-values"
    aims_at = frozenset({"instructions", "latency", "compute"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels that loop so often, or divide by it."""
        for target in targets(subject):
            ways = _ways(target)
            memory = shared_in_front(target.kernel.body)
            if not ways or memory is None or contains_opaque(target.kernel.body):
                continue
            divisors = {n for e in _divisors(target) for n in names_in(e)}
            known = any(divisors & way.keys() for way in ways)
            yield Move(self.name, target.region, (("loops", "kept"),), _GAINS[known])
            if any(unrolled(body, target) != body for body in (substitute(target.kernel.body, w) for w in ways)):
                yield Move(self.name, target.region, (("loops", "whole"),), _WHOLE_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with all ways."""
        target = target_of(subject, move)
        memory = shared_in_front(target.kernel.body)
        assert memory is not None
        rest = tuple(s for s in target.kernel.body if not any(s is one for one in memory))
        body: Block = rest
        for way in reversed(_ways(target)):
            own = substitute(rest, way)
            if move.param("loops") == "whole":
                own = unrolled(own, target)
            test = conjunction([Binary("==", Name(name), number) for name, number in way.items()])
            assert test is not None
            body = (If(test, own, body),)
        body = (*memory, Comment("// what is timed; anything else goes the way of before"), *body)
        return rewritten(target, move, replace(target.kernel, body=body))


def _ways(target: Target) -> list[Way]:
    """The integer parameters that say how often a loop goes round, or what is divided by, as the numbers that they have
    at one of the timed sizes or several; none that always have one, which fixed-values is for, nor a number that is
    asked for already."""
    found = {param.name: (param, _timed(target, param)) for param in _parameters(target)}
    one = {name: values for name, (_, values) in found.items() if values and len(set(values)) == 1}
    several = {name: values for name, (_, values) in found.items() if len(set(values)) > 1}
    for names in ([*one, *several], list(one)):  # too many ways: those alone that do not vary
        rows = dict.fromkeys(zip(*(found[name][1] for name in names), strict=True))
        if names and len(rows) <= _MOST_WAYS:
            return [_typed_way(target, [found[name][0] for name in names], row) for row in rows]
    return []


def _typed_way(target: Target, params: Sequence[Param], row: Sequence[int]) -> Way:
    numbers = {param.name: typed(param, value, target) for param, value in zip(params, row, strict=True)}
    return {name: number for name, number in numbers.items() if number is not None}


def _parameters(target: Target) -> list[Param]:
    """Those that hold one integer for the whole kernel and that a loop or a divisor asks for."""
    body = target.kernel.body
    own = names_assigned(body) | set(variables(body)) | reached_by_macros(target.source)
    tests = (e for s in body if isinstance(s, If) for e in walk_expr(s.test))
    told = {e.left.text for e in tests if isinstance(e, Binary) and e.op == "==" and isinstance(e.left, Name)}
    asked = _asked(target) - own - told  # what is told: once is enough
    return [
        p
        for p in target.kernel.params
        if not p.is_pointer and "&" not in p.type and p.name in asked and typed(p, 2, target) is not None
    ]


def _asked(target: Target) -> frozenset[str]:
    """The names that heads of loops and divisors are made of."""
    body = target.kernel.body
    heads = [e for s in walk_stmts(body) if isinstance(s, For) for e in (s.bound, s.step)]
    heads += [s.test for s in walk_stmts(body) if isinstance(s, While)]
    return frozenset(n for e in [*heads, *_divisors(target)] for n in names_in(target.known.expand(e)))


def _divisors(target: Target) -> list[Expr]:
    return [e.right for e in walk_exprs(target.kernel.body) if isinstance(e, Binary) and e.op in ("/", "%")]


def _timed(target: Target, param: Param) -> list[int]:
    """The small numbers that are passed for a parameter, one for each of the timed sizes; none where one is too large,
    or the same is always passed."""
    text = target.size_text(Name(param.name))
    if text is None or always(target.contract, text) is not None:
        return []
    try:
        values = [evaluate_int(text, sizes) for sizes in target.contract.timed_sizes()]
    except (ContractError, ValueError):
        return []
    most = _MOST if len(set(values)) == 1 else _MOST_OF_SEVERAL
    return values if all(0 < value <= most for value in values) else []
