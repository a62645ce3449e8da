"""integer-powers: ``pow(x, 2)`` is a product, ``pow(x, -2)`` one over it, ``pow(x, 0.5)`` a root (strength reduction).

A general power takes a logarithm and an exponential, with branches that also keep it in the loop where it does not
change; a product takes an instruction. Everywhere in the file, since such calls mostly stand in functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.rewrite import insert_helpers
from fsr.source.token import Token
from fsr.source.tokens import close_of, split_commas, tokenize
from fsr.transform.protocol import Move, Subject

MOST = 8
GAIN = 1.3
# As pow itself a float's power is a float, and an integer's a double.
_HELPER = """template <int N, typename T>
__device__ __forceinline__ auto fsr_power(T x) -> decltype(pow(x, 2.0f))
{
    decltype(pow(x, 2.0f)) base = x, power = x;
#pragma unroll
    for (int factor = 1; factor < N; ++factor) power *= base;
    return power;
}
"""
_CALLS = ("pow", "powf")
_BEFORE_VALUES = frozenset(["return", "else", "do"])  # words that no declaration has in front of a function's name


@dataclass(frozen=True, slots=True)
class IntegerPowers:
    """Powers of a small number, and of a half, and one over them, in place of calls for any."""

    name: str = "integer-powers"
    aims_at: frozenset[str] = frozenset(["compute", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the file, where it has such a call; none under an exact contract."""
        if not subject.contract.tolerance.exact and any(_powers(subject.candidate.source)):
            yield Move(self.name, "plan", (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with products."""
        old = subject.candidate
        text = old.source
        found = list(_powers(text))
        for start, end, new in reversed(found):
            text = text[:start] + new + text[end:]
        if "fsr_power<" in text:
            text = insert_helpers(text, _HELPER)
        return replace(old, source=text, actions=(*old.actions, move.name))


def _powers(text: str) -> Iterator[tuple[int, int, str]]:
    """Places of calls, and what stands there then; of calls in one another's arguments the outer ones."""
    tokens, at = tokenize(text), 0
    while at < len(tokens):
        call = _call(tokens, at)
        if call is None:
            at += 1
            continue
        comma, close = call
        base, exponent = text[tokens[at + 2].start : tokens[comma].start].strip(), tokens[comma + 1 : close]
        new = _product(base, "".join(t.text for t in exponent), single=tokens[at].text == "powf")
        if new and not _in_helper(text, tokens[at].start):
            first = at - 2 if at > 1 and tokens[at - 1].text == "::" and tokens[at - 2].text == "std" else at
            yield tokens[first].start, tokens[close].end, new
            at = close
        at += 1


def _in_helper(text: str, at: int) -> bool:
    """Whether a place is in what an earlier move put in, which asks for the type that pow gives."""
    begin = text.find(_HELPER.strip("\n"))
    return begin >= 0 and begin <= at < begin + len(_HELPER)


def _call(tokens: list[Token], at: int) -> tuple[int, int] | None:
    """Of a call of pow with two arguments the places of its comma and of its closing parenthesis."""
    if tokens[at].text not in _CALLS or at + 1 >= len(tokens) or tokens[at + 1].text != "(":
        return None
    before = tokens[at - 1] if at else None
    declared = before is not None and before.kind == "name" and before.text not in _BEFORE_VALUES
    if declared or (before is not None and before.text in (".", "->")):  # or a method
        return None
    close = close_of(tokens, at + 1)
    given = [] if close is None else split_commas(tokens[at + 2 : close])
    return (at + 2 + len(given[0]), close) if close is not None and len(given) == 2 else None


def _product(base: str, exponent: str, *, single: bool) -> str:
    """A power of a text; '' where the exponent is no small number."""
    try:
        number = float(exponent.rstrip("fF"))
    except ValueError:
        return ""
    base = f"(float)({base})" if single else base
    if abs(number) == 0.5:
        return f"{'sqrt' if number > 0 else 'rsqrt'}({base})"
    if number == -1.0:
        return f"(1 / fsr_power<1>({base}))"
    if not number.is_integer() or not 2 <= abs(number) <= MOST:
        return ""
    power = f"fsr_power<{int(abs(number))}>({base})"
    return power if number > 0 else f"(1 / {power})"
