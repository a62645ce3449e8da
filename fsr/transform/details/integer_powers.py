"""integer-powers: ``pow(x, 2)`` is a product, ``pow(x, -2)`` one over it, ``pow(x, 0.5)`` a root, ``pow(10, x)`` an
exponential of that base (strength reduction).

A general power takes a logarithm and an exponential, with branches that also keep it in the loop where it does not
change; a product takes an instruction. Everywhere in the file, since such calls mostly stand in functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.rewrite import insert_helpers
from fsr.source.token import Token
from fsr.source.tokens import close_of, split_commas, tokenize
from fsr.transform.protocol import Move, Subject

MOST = 8
_ROUNDED = 1e-7  # of a third, as it is written in decimals
GAIN = 1.3
# As pow itself a float's power is a float, and an integer's a double.
_REAL = """template <typename T>
struct fsr_real {
    using type = double;
};
"""
_SINGLE = """template <>
struct fsr_real<float> {
    using type = float;
};
"""
_PRODUCT = """template <int N, typename T>
__device__ __forceinline__ typename fsr_real<T>::type fsr_power(T x)
{
    typename fsr_real<T>::type base = x, power = base;
#pragma unroll
    for (int factor = 1; factor < N; ++factor) power *= base;
    return power;
}
"""
# A root of what is below zero is no number, that of -0 is 0.
_ROOT = """template <int N, typename T>
__device__ __forceinline__ typename fsr_real<T>::type fsr_power_and_root(T x)
{
    typename fsr_real<T>::type base = x, power = sqrt(base);
#pragma unroll
    for (int factor = 0; factor < N; ++factor) power *= base;
    return power;
}
"""
_OF_TWO = """template <typename T, typename E>
struct fsr_real_of {
    using type = decltype(typename fsr_real<T>::type() * typename fsr_real<E>::type());
};
"""
_THIRD = """template <typename T, typename E>
__device__ __forceinline__ typename fsr_real_of<T, E>::type fsr_third_root(T x, E)
{
    const typename fsr_real_of<T, E>::type base = x;
    return base < 0 ? sqrt(base) : fabs(cbrt(base));
}
"""
_EXPONENTIAL = """template <typename B, typename T>
__device__ __forceinline__ typename fsr_real_of<B, T>::type fsr_NAME(B, T x)
{
    const typename fsr_real_of<B, T>::type exponent = x;
    return CALL(exponent);
}
"""
_HELPERS = {
    "fsr_power": _PRODUCT, "fsr_power_and_root": _ROOT, "fsr_third_root": _THIRD,
    "fsr_ten_to": _EXPONENTIAL.replace("NAME", "ten_to").replace("CALL", "exp10"),
    "fsr_two_to": _EXPONENTIAL.replace("NAME", "two_to").replace("CALL", "exp2"),
}  # fmt: skip
_BASES = {2.0: ("exp2f", "fsr_two_to"), 10.0: ("exp10f", "fsr_ten_to")}
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
        while found := list(_powers(text)):  # then those in one another's arguments
            for start, end, new in reversed(found):
                text = text[:start] + new + text[end:]
        wanted = [helper for name, helper in _HELPERS.items() if re.search(rf"\b{name}\b", text)]
        kinds = [_REAL, _SINGLE, *([_OF_TWO] if any("fsr_real_of" in helper for helper in wanted) else [])]
        for helper in (*(kinds if any("fsr_real" in helper for helper in wanted) else ()), *wanted):
            text = insert_helpers(text, helper)
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
        single = tokens[at].text == "powf"
        new = _product(base, "".join(t.text for t in exponent), single=single)
        new = new or _exponential(base, text[tokens[comma].end : tokens[close].start].strip(), single=single)
        if new:
            first = at - 2 if at > 1 and tokens[at - 1].text == "::" and tokens[at - 2].text == "std" else at
            yield tokens[first].start, tokens[close].end, new
            at = close
        at += 1


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
    """A power of a text; '' where the exponent is no small number, nor a half or a third."""
    number = _value(exponent)
    if number is None:
        return ""
    base = f"(float)({base})" if single else base
    if abs(number) == 0.5:
        return f"{'sqrt' if number > 0 else 'rsqrt'}({base})"
    if abs(number - 1 / 3) < _ROUNDED:
        return f"fsr_third_root({base}, {'1.0f' if single else exponent})"
    if number == -1.0:
        return f"(1 / fsr_power<1>({base}))"
    if abs(number) in (1.5, 2.5, 3.5):
        power = f"fsr_power_and_root<{int(abs(number))}>({base})"
    elif number.is_integer() and 2 <= abs(number) <= MOST:
        power = f"fsr_power<{int(abs(number))}>({base})"
    else:
        return ""
    return power if number > 0 else f"(1 / {power})"


def _exponential(base: str, exponent: str, *, single: bool) -> str:
    """A power of two or of ten with any exponent; '' for other bases, and where it is a number."""
    calls = _BASES.get(_value(base) or 0.0)
    if calls is None or _value(exponent) is not None:
        return ""
    return f"{calls[0]}({exponent})" if single else f"{calls[1]}({base}, {exponent})"


def _value(text: str) -> float | None:
    """A number, or a quotient of two that is not one of whole numbers; None for anything else."""
    plain = re.sub(r"\s|\((?=[-\d.])|(?<=[\d.fF])\)", "", text)
    parts = plain.split("/")
    try:
        numbers = [float(part.rstrip("fF")) for part in parts]
    except ValueError:
        return None
    if len(parts) == 1:
        return numbers[0]
    whole = all(re.fullmatch(r"-?\d+", part) for part in parts)
    return None if whole or len(parts) > 2 or not numbers[1] else numbers[0] / numbers[1]
