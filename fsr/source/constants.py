"""``__constant__`` variables without initialiser: what host code fills by name before it launches a kernel. Those that
are ``__device__`` and only read there are taken for such."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from fsr.source.items import ATTRIBUTES, CONTAINERS, Item, flat, parse_items, standing_for
from fsr.source.tokens import Token, close_of, spelt, split_commas, tokenize
from fsr.source.types import aliases, resolve_dtype

_WORD = frozenset(("__constant__",))
_BEFORE = frozenset(("static", "inline", "extern", "const", "volatile", "__device__", "__constant__", "struct"))


@dataclass(frozen=True, slots=True)
class ConstantVariable:
    """``name``: with its namespaces. ``dtype``: NumPy name or 'bfloat16' of one lane, None for a type that no values
    can be made of; ``lanes``: 4 for float4. ``extents``: C expressions, outermost first; () for a single value."""

    name: str
    type: str
    dtype: str | None
    lanes: int
    extents: tuple[str, ...]


def as_constants(text: str, names: Collection[str]) -> str:
    """The text with ``__device__`` variables of these names, with or without their namespaces, as ``__constant__``
    ones: what host code fills (``cudaMemcpyToSymbol`` takes either) and device code only reads. Any other stays, and
    all in declarations that give a value."""
    short = {name.rpartition("::")[2] for name in names}
    if not short or "__device__" not in text:
        return text
    changed = list[int]()
    for item in flat(parse_items(text, strict=False)):
        tokens = tokenize(text[item.start : item.end]) if item.kind == "variable" and short & item.uses else []
        spelt_as = [t.text for t in tokens]
        pointer = "*" in spelt_as[: spelt_as.index("[") if "[" in spelt_as else None]
        if "__device__" not in spelt_as or pointer or {"__constant__", "=", "{", "extern"} & {*spelt_as}:
            continue
        told = [t.text for t in tokens if t.kind == "name" and t.text in short]
        if told and not any(_is_written(name, text[: item.start] + text[item.end :]) for name in told):
            changed += [item.start + t.start for t in tokens if t.text == "__device__"][:1]
    for at in reversed(changed):
        text = text[:at] + "__constant__" + text[at + len("__device__") :]
    return text


def _is_written(name: str, text: str) -> bool:
    """Whether anything looks as if it were changed, or handed on."""
    at = rf"\b{re.escape(name)}\b(?:\s*\[[^\]]*\]|\s*\.\s*\w+)*"
    taken = r"(?:^|[(,=;{}?:<>!+*/|^~-]|return)\s*&"
    return re.search(rf"(?:\+\+|--|{taken})\s*{at}|{at}\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))", text) is not None


def constant_variables(text: str) -> tuple[ConstantVariable, ...]:
    """Those that a text declares at namespace scope and gives no value, in order."""
    items = parse_items(text, strict=False)
    words = standing_for(flat(items), _WORD)
    if not any(words & item.head for item in flat(items)):
        return ()
    return tuple(found for item, space in _placed(items, ()) for found in _variables(text, item, space, words))


def _placed(items: Sequence[Item], space: tuple[str, ...]) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """Items that are no containers, with the namespaces around them."""
    for item in items:
        if item.kind in CONTAINERS:
            yield from _placed(item.children, (*space, *item.names))
        else:
            yield item, space


def _variables(text: str, item: Item, space: tuple[str, ...], words: frozenset[str]) -> Iterator[ConstantVariable]:
    tokens = [t for t in tokenize(text[item.start : item.end]) if t.kind != "directive" and t.text != ";"]
    if item.kind != "variable" or not words & {t.text for t in tokens}:
        return
    type_, first = "", list(_without_attributes(tokens, words))
    for number, part in enumerate(split_commas(first)):
        texts = [t.text for t in part]
        end = texts.index("[") if "[" in texts else len(part)
        if {"=", "{"} & set(texts) or {"*", "&", "("} & set(texts[:end]) or not end:
            return  # it has a value, is a pointer, or is no plain declaration
        if number == 0:
            type_ = spelt(part[: end - 1])
        dtype, lanes = resolve_dtype(type_, aliases(text))
        yield ConstantVariable("::".join((*space, part[end - 1].text)), type_, dtype, lanes, _extents(part, end))


def _without_attributes(tokens: Sequence[Token], words: frozenset[str]) -> Iterator[Token]:
    index = 0
    while index < len(tokens):
        if tokens[index].text in ATTRIBUTES and index + 1 < len(tokens):
            index = (close_of(tokens, index + 1) or index) + 1
        else:
            if tokens[index].text not in _BEFORE | words:
                yield tokens[index]
            index += 1


def _extents(part: Sequence[Token], at: int) -> tuple[str, ...]:
    found = []
    while at < len(part) and part[at].text == "[":
        close = close_of(part, at)
        if close is None:
            break
        found.append(spelt(part[at + 1 : close]))
        at = close + 1
    return tuple(found)
