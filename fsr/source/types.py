"""What type names stand for: typedefs, ``using``, enumerations and macros followed down to element types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from fsr.hardware.c_types import BY_SPELLING, LANES, dtype_bytes
from fsr.source.items import CONTAINERS, Item, parse_items
from fsr.source.macros import read_define
from fsr.source.tokens import Token, close_of, spelt, tokenize

_NOISE = frozenset((
    "const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "typename", "__grid_constant__",
    "register", "enum",
))  # fmt: skip
_SIGNS = ("signed", "unsigned", "long", "short", "char", "int")
_FOREIGN = re.compile(r"^(::)?(cuda::)?(std::)?")


@lru_cache(maxsize=64)
def aliases(source: str) -> dict[str, str]:
    """The type names that a text declares at file scope and in namespaces, by what they stand for. Raises nothing."""
    items = _scoped(parse_items(source, strict=False), ())
    return aliases_of((i.kind, source[i.start : i.end], spaces) for i, spaces in items)


def _scoped(items: Sequence[Item], spaces: tuple[str, ...]) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """All items that are no namespaces or linkage blocks, with the namespaces around each."""
    for item in items:
        if item.kind in CONTAINERS:
            yield from _scoped(item.children, (*spaces, *(item.names if item.kind == "namespace" else ())))
        else:
            yield item, spaces


def aliases_of(items: Iterable[tuple[str, str, tuple[str, ...]]], within: tuple[str, ...] = ()) -> dict[str, str]:
    """As :func:`aliases`, of (kind, text, namespaces) of items; of a macro and a type with one name the type counts.

    What a namespace declares goes by its bare name too, and by each that says a part of its namespaces: which of them
    is right depends on where it stands. Of several types with one such name that of ``within`` counts, the namespaces
    of who asks, or the last."""
    found, nearest, macros = dict[str, str](), dict[str, tuple[int, str]](), dict[str, str]()
    for kind, text, spaces in items:
        if kind == "define":
            macro = read_define(text)
            if macro is not None and macro.params is None and re.fullmatch(r"[A-Za-z_][\w: ]*", macro.body):
                macros.setdefault(macro.name, macro.body)
        elif kind in ("alias", "record"):
            name, meaning = _declared(tokenize(text))
            if name and meaning:
                found |= {"::".join((*spaces[at:], name)): meaning for at in range(len(spaces) + 1)}
                if within[: len(spaces)] == spaces and len(spaces) >= nearest.get(name, (0, ""))[0]:
                    nearest[name] = len(spaces), meaning
    return macros | found | {name: meaning for name, (_, meaning) in nearest.items()}


def _declared(tokens: Sequence[Token]) -> tuple[str, str]:
    """(name, type) of a typedef, ``using`` or enumeration; empty for what stands for no one type."""
    texts = [t.text for t in tokens if t.kind != "directive"]
    if texts[:1] == ["using"] and "=" in texts[:3]:
        return texts[1], spelt(tokens[3:-1])
    typedef = texts[:1] == ["typedef"]
    words = tokens[1:] if typedef else tokens
    if words and words[0].text == "enum":
        brace = next((i for i, t in enumerate(words) if t.text == "{"), None)
        head = words[1:brace]
        colon = next((i for i, t in enumerate(head) if t.text == ":"), None)
        names = [t.text for t in head[:colon] if t.kind == "name" and t.text not in ("class", "struct")]
        close = None if brace is None else close_of(words, brace)
        if typedef and close is not None and close + 1 < len(words):
            names = [words[close + 1].text]
        return names[-1] if names else "", spelt(head[colon + 1 :]) if colon is not None else "int"
    if typedef and not {"(", "{", "[", ",", "*", "<"} & set(texts) and len(tokens) > 3:
        return tokens[-2].text, spelt(tokens[1:-2])
    return "", ""


COMPLEX = {"cuFloatComplex": "float2", "cuComplex": "float2", "cuDoubleComplex": "double2"}  # of cuComplex.h


def plain_type(text: str, known: Mapping[str, str]) -> str:
    """The usual spelling of a type without stars, const and namespaces of the standard libraries, names followed:
    ``unsigned long`` of ``const word_t`` after ``typedef long unsigned word_t;``."""
    plain = text
    for _ in range(16):  # chains of typedefs are short; a cycle must not hang
        words = [w for w in re.sub(r"\s*::\s*", "::", plain).split() if w not in _NOISE]
        plain = _FOREIGN.sub("", " ".join(words)) if " ".join(words) not in BY_SPELLING else " ".join(words)
        if words and all(w in _SIGNS for w in words):
            return _integer(words)
        if plain in BY_SPELLING or known.get(plain, plain) == plain:
            return COMPLEX.get(plain, plain)
        plain = known[plain]
    return plain


def resolve_dtype(text: str, known: Mapping[str, str] | None = None) -> tuple[str | None, int]:
    """(dtype, lanes) of a C type without its stars: ('float32', 4) for ``const float4``; (None, 1) if unknown."""
    plain = plain_type(text, known or {})
    if plain in BY_SPELLING:
        return BY_SPELLING[plain].dtype, 1
    element, lanes = LANES.get(plain, (None, 1))
    return (None, 1) if element is None else (element.dtype, lanes)


def type_bytes(text: str, known: Mapping[str, str] | None = None) -> int:
    """Bytes of a C type of one number or a few, without its stars; 0 if unknown, of bool too (see dtype_bytes)."""
    dtype, lanes = resolve_dtype(text, known)
    return 0 if dtype is None else (dtype_bytes(dtype) or 0) * lanes


def _integer(words: Sequence[str]) -> str:
    """The usual spelling of an integer type: ``long unsigned int`` is ``unsigned long``."""
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return ("signed " if "signed" in words else sign) + "char"
    if "short" in words:
        return sign + "short"
    longs = words.count("long")
    return sign + ("int" if longs == 0 else " ".join(["long"] * longs))
