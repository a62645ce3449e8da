"""The launches that host code makes: ``k<256><<<grid, block, shared, stream>>>(args)``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fsr.source.items import Item
from fsr.source.pieces import SourceText
from fsr.source.tokens import Token, close_angle, close_of, line_of, split_commas, tokenize


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """One launch as written. ``entry`` holds the template arguments; ``shared`` is '0' when left out.

    ``scope``: the text of the host function around it up to the launch, where its variables are set.
    """

    entry: str
    grid: str
    block: str
    shared: str
    args: tuple[str, ...]
    line: int
    scope: str


def find_launches(source: SourceText) -> tuple[HostLaunch, ...]:
    """Every launch in a file's own functions and macros, in order."""
    found: list[HostLaunch] = []
    for top in source.items:
        for item in top.walk():
            if item.kind == "function" and item.body is not None and "<<<" in source.text[item.body : item.end]:
                found += _in_function(source, item)
    return tuple(found)


def _in_function(source: SourceText, item: Item) -> Iterator[HostLaunch]:
    text = source.text[item.start : item.end]
    tokens = tokenize(text)
    for at, token in enumerate(tokens):
        if token.text != "<<<":
            continue
        close = next((i for i in range(at, len(tokens)) if tokens[i].text == ">>>"), None)
        begin = _entry_start(tokens, at)
        if close is None or begin is None or close + 1 >= len(tokens) or tokens[close + 1].text != "(":
            continue
        end = close_of(tokens, close + 1)
        if end is None:
            continue
        config = [_text(text, part) for part in split_commas(tokens[at + 1 : close])]
        if len(config) < 2:
            continue
        yield HostLaunch(
            entry=_text(text, tokens[begin:at]),
            grid=config[0],
            block=config[1],
            shared=config[2] if len(config) > 2 else "0",
            args=tuple(_text(text, part) for part in split_commas(tokens[close + 2 : end])),
            line=line_of(source.text, item.start + token.start),
            scope=text[: tokens[begin].start],
        )


def _entry_start(tokens: Sequence[Token], at: int) -> int | None:
    """The index of the first token of the kernel name before ``<<<``."""
    index = at - 1
    if index >= 0 and tokens[index].text == ">":
        opening = [i for i in range(index) if tokens[i].text == "<" and close_angle(tokens, i) == index]
        if not opening:
            return None
        index = opening[-1] - 1
    if index < 0 or tokens[index].kind != "name":
        return None
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind == "name":
        index -= 2
    return index


def _text(text: str, tokens: Sequence[Token]) -> str:
    if not tokens:
        return ""
    return re.sub(r"\s+", " ", text[tokens[0].start : tokens[-1].end])
