"""Whole numbers that a source names, however it spells them: a size that is one of them, or a product of two, may be
treated apart. Hexadecimal, binary and octal digits, separators, suffixes, shifts, macros, const, constexpr and enum."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from fsr.source.tokens import tokenize

LARGEST = 1 << 40
_LITERAL = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uUlLzZ]*$")
_FLOATING = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?[fFlL]?$")
_DEFINE = re.compile(r"#\s*define\s+(\w+)[ \t]+(.+)$", re.DOTALL)
_NAMED = re.compile(r"\b(?:const|constexpr|enum)\b[^;={}()]*?(?:\{[^{}]*?)?\b(\w+)\s*=\s*([^;,{}]+)")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.Mod: operator.mod,
}  # fmt: skip


@lru_cache(maxsize=256)
def numbers(source: str) -> frozenset[int]:
    """Every constant of the source, and of each constant expression its value. Kept: every candidate's cases ask for
    the original's again."""
    code, definitions = _texts(source)
    known = _named(code, definitions)
    found = set(known.values())
    for text in [code, *(text for _, text in definitions)]:
        for constants, run in itertools.groupby(_words(text, known), key=_is_constant):
            if constants:
                found |= set(_values(list(run)))
    return frozenset(n for n in found if 2 < n <= LARGEST)


@lru_cache(maxsize=64)
def values(source: str) -> frozenset[float]:
    """Every number of the source that a value may be compared with: floating literals, and whole ones other than 0."""
    words = [t.text for t in tokenize(source) if t.kind == "number"]
    found = {float(word.rstrip("fFlL")) for word in words if _FLOATING.match(word)}
    found |= {float(n) for n in (_value(w, {}) for w in words) if isinstance(n, int) and n <= LARGEST}
    return frozenset(n for n in found if n and math.isfinite(n))


@lru_cache(maxsize=64)
def literals(source: str, *, floating: bool = False) -> frozenset[int]:
    """Every whole number of the source, of up to 64 bits, with its negative where a minus stands before it; those
    spelled as integers, or as floating numbers."""
    words = [t.text for t in tokenize(source) if t.kind != "string"]
    found = set[int]()
    for before, word in itertools.pairwise(["", *words]):
        number: Word | float = float(word.rstrip("fFlL")) if floating and _FLOATING.match(word) else _value(word, {})
        if isinstance(number, float if floating else int) and float(number).is_integer() and abs(number) < 1 << 64:
            found.add(int(-number if before == "-" else number))
    return frozenset(found)


def constant(text: str, source: str) -> int | None:
    """The value of an expression that stands in a source; None where it is no constant that can be told."""
    return _evaluated(_words(text, _known(source)))


@lru_cache(maxsize=64)
def _known(source: str) -> dict[str, int]:
    """Its macros and constants that are numbers; asked for once for every name of a condition."""
    return _named(*_texts(source))


def constants(source: str) -> frozenset[int]:
    """What macros, constants and enumerators of a source are, above 2."""
    return frozenset(n for n in _known(source).values() if 2 < n <= LARGEST)


def products(values: Iterable[int], largest: int) -> set[int]:
    """The values' products, two at a time, up to ``largest``."""
    kept = sorted(v for v in values if v > 1)
    return {a * b for a, b in itertools.combinations_with_replacement(kept, 2) if a * b <= largest}


def folded(values: Iterable[int], largest: int) -> list[int]:
    """What two of the values come to in a comparison that hides a number, the likeliest first: ``(n ^ a) == b``,
    ``n * a == b``, ``n + a == b`` and ``n - a == b``; up to ``largest``."""
    pairs = list(itertools.combinations(sorted(values), 2))
    found = [a ^ b for a, b in pairs] + [b // a for a, b in pairs if not b % a]
    found += [b - a for a, b in pairs] + [a + b for a, b in pairs]
    return [n for n in dict.fromkeys(found) if 2 < n <= largest]


_ARITHMETIC = {"+", "-", "*", "/", "%", "<<", ">>", "(", ")", "|", "&"}
Word = int | str


def _value(word: str, known: dict[str, int]) -> Word:
    match = _LITERAL.match(word.replace("'", ""))
    if match is None:
        return known.get(word, word)
    digits = match[1]
    if digits[:1] == "0" and len(digits) > 1 and digits[1] not in "xXbB":
        digits = "0o" + digits[1:]
    return int(digits, 0)


def _texts(source: str) -> tuple[str, list[tuple[str, str]]]:
    """The code without strings and directives, and the macros without parameters, by name."""
    tokens = [t for t in tokenize(source) if t.kind != "string"]
    code = " ".join(t.text for t in tokens if t.kind != "directive").replace("< <", "<<").replace("> >", ">>")
    macros = [m for m in (_DEFINE.match(t.text) for t in tokens if t.kind == "directive") if m is not None]
    return code, [(m[1], m[2]) for m in macros]


def _words(text: str, known: dict[str, int]) -> list[Word]:
    return [_value(word, known) for word in re.findall(r"[\w.']+|<<|>>|\S", text)]


def _is_constant(word: Word) -> bool:
    return isinstance(word, int) or word in _ARITHMETIC


def _named(code: str, definitions: list[tuple[str, str]]) -> dict[str, int]:
    """Macros and constants whose text comes to a number, to a depth of three names."""
    known: dict[str, int] = {}
    for _ in range(3):
        for name, text in [*definitions, *_NAMED.findall(code)]:
            value = _evaluated(_words(text, known))
            if value is not None:
                known[name] = value
    return known


def _values(run: list[Word]) -> Iterable[int]:
    """The numbers of a run of constants and operators, and the values of its parenthesised parts and of the whole."""
    yield from (w for w in run if isinstance(w, int))
    for length in range(3, min(len(run), 9) + 1):
        for start in range(min(len(run) - length, 64) + 1):
            part = run[start : start + length]
            value = _evaluated(part) if isinstance(part[0], int) or part[0] == "(" else None
            if value is not None:
                yield value


def _evaluated(words: list[Word]) -> int | None:
    if not words or len(words) > 40 or not all(map(_is_constant, words)):
        return None
    try:
        tree = ast.parse(" ".join("//" if w == "/" else str(w) for w in words), mode="eval")
        return _of(tree.body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _of(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _of(node.left), _of(node.right)
        if isinstance(node.op, ast.LShift) and right > 64:
            raise ValueError("a shift beyond any size")
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_of(node.operand)
    raise ValueError("no constant")
