"""Integers that a text fixes at compile time: object-like macros, constants and enumerators at file level.

A macro counts where its body is one operand, a number, a name or a bracket: another one means what stands around its
use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from fsr.source.condition import NotConstant, value_of
from fsr.source.macros import macros
from fsr.source.tokens import close_of, split_commas, tokenize

_TYPE = r"(?:(?:std\s*::\s*)?(?:unsigned|signed|int|long|short|size_t|ptrdiff_t|uint|u?int\d+_t)\b\s*)+"
_QUALIFIERS = r"(?:(?:static|inline|__device__|__constant__|constexpr|const)\s+)*"
# At the beginning of a line, and the only one of its statement: what stands indented may be local.
_CONSTANT = re.compile(
    rf"^{_QUALIFIERS}(?:constexpr|const)\s+{_QUALIFIERS}({_TYPE})(?:const\s+)?(\w+)\s*=\s*([^,;{{}}]+);", re.MULTILINE
)
_ENUM = re.compile(r"^(?:typedef\s+)?enum\b(?!\s*(?:class|struct)\b)[^;{}()]*\{([^{}]*)\}", re.MULTILINE)
_CASTS = re.compile(rf"\(\s*{_TYPE}\)|static_cast\s*<\s*{_TYPE}>")


@lru_cache(maxsize=64)
def integers(text: str) -> Mapping[str, int]:
    """The value of every such name that has one, whatever the order; a name that is given two values has none."""
    written: dict[str, set[str]] = {}
    for macro in macros(text):
        written.setdefault(macro.name, set()).add(macro.body if macro.params is None and _closed(macro.body) else "")
    for name, value in _enumerators(text):
        written.setdefault(name, set()).add(value)
    constants = _CONSTANT.findall(text)
    for _, name, value in constants:
        written.setdefault(name, set()).add(value)
    unsigned = {name for type_, name, _ in constants if re.search(r"unsigned|\bu|size_t", type_)}
    waiting, found = {name: values.pop() for name, values in written.items() if len(values) == 1}, dict[str, int]()
    while True:
        ready = {name: v for name, value in waiting.items() if (v := integer_of(value, found)) is not None}
        if not ready:
            return MappingProxyType(found)
        found |= {name: v for name, v in ready.items() if v >= 0 or name not in unsigned}
        waiting = {name: value for name, value in waiting.items() if name not in ready}


def _enumerators(text: str) -> Iterator[tuple[str, str]]:
    """The names that enumerations give numbers to, and the numbers: one more than the last where none is written."""
    for inside in _ENUM.findall(text):
        last = "-1"
        for part in split_commas([t for t in tokenize(inside) if t.kind != "comment"]):
            words = [t.text for t in part if t.text.strip()]
            if not words or "#" in inside:
                break
            last = " ".join(words[2:]) if words[1:2] == ["="] else f"({last}) + 1"
            yield words[0], last


def _closed(body: str) -> bool:
    tokens = tokenize(body)
    return len(tokens) == 1 or (bool(tokens) and tokens[0].text == "(" and close_of(tokens, 0) == len(tokens) - 1)


def integer_of(text: str, known: Mapping[str, int]) -> int | None:
    """The value of a C expression of integers and known names; None for any other."""
    words = [t.text for t in tokenize(_CASTS.sub(" ", text))]
    if not words or any(re.match(r"[A-Za-z_]", word) and word not in known for word in words):
        return None
    try:
        return value_of([part for word in words for part in _put(word, known)])
    except NotConstant:
        return None


def _put(word: str, known: Mapping[str, int]) -> list[str]:
    return ["(", *(("-",) if known[word] < 0 else ()), str(abs(known[word])), ")"] if word in known else [word]
