"""What the grammar stumbles on, taken out of a kernel's text before it is parsed, every other character in its place.

Attributes and pragmas in places that are ordinary CUDA are no CUDA to the grammar. They become blanks, and the parser
gets them as :class:`Blank` instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from fsr.source.conditionals import directive_name, taken
from fsr.source.tokens import Token, blanked, close_of, tokenize

_CALLS = frozenset((
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__align__", "alignas", "__attribute__",
    "_Pragma",
))  # fmt: skip
_WORDS = frozenset(("__forceinline__", "__noinline__", "__grid_constant__", "__global__"))


@dataclass(frozen=True, slots=True)
class Blank:
    """Text taken out: its range, the text, and what it is ('pragma' or the attribute's name)."""

    start: int
    end: int
    text: str
    kind: str


def blanks(text: str) -> tuple[str, list[Blank]]:
    """The text as the grammar takes it, and what was taken out, in order."""
    found, out, end = list(_found(text, tokenize(text))), [], 0
    for blank in found:
        out += [text[end : blank.start], blanked(text[blank.start : blank.end])]
        end = blank.end
    return "".join([*out, text[end:]]), found


def _found(text: str, tokens: list[Token]) -> Iterator[Blank]:
    index = 0
    while index < len(tokens):
        token = tokens[index]
        close = None
        if token.kind == "directive" and directive_name(token.text) == "pragma":
            yield Blank(token.start, token.end, token.text, "pragma")
        elif token.text in _WORDS:
            yield Blank(token.start, token.end, token.text, token.text)
        elif token.text in _CALLS and index + 1 < len(tokens) and tokens[index + 1].text == "(":
            close = close_of(tokens, index + 1)
        if close is not None:
            written = text[token.start : tokens[close].end]
            pragma = token.text == "_Pragma"
            kept = "#pragma " + written[written.find('"') + 1 : written.rfind('"')] if pragma else written
            yield Blank(token.start, tokens[close].end, kept, "pragma" if pragma else token.text)
            index = close
        index += 1


def one_head(text: str, body: int, defined: Collection[str]) -> str:
    """A definition whose head stands in several branches of ``#if`` with the head that is compiled alone, every
    character that is left in its place. ``body``: where the brace of the body is."""
    tokens = [t for t in tokenize(text) if t.start < body]
    if not any(t.kind == "directive" and directive_name(t.text) in ("if", "ifdef", "ifndef") for t in tokens):
        return text
    out, end = [], 0
    for token in taken(tokens, defined):
        out += [blanked(text[end : token.start]), token.text]
        end = token.end
    return "".join([*out, blanked(text[end:body]), text[body:]])


def unqualified(text: str, head: int, names: Collection[str]) -> str:
    """A definition without these macros in its head, every other character in its place: of ``T * MACRO a`` the grammar
    makes no parameter where T is a type of the file. ``head``: its length."""
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b") if names else None
    return text if words is None else words.sub(lambda m: blanked(m[0]), text[:head]) + text[head:]


_DECLARED = re.compile(
    r"(?<![\w.])(?!return\b|typename\b|class\b|struct\b|else\b|goto\b|const\b|volatile\b)[A-Za-z_][\w:>]*[\s*&]+([A-Za-z_]\w*)\s*(?=[=;,)\[{])"
)
_BRACKETED = re.compile(r"(?<![\w\])>])(\s*)\((\s*)([A-Za-z_]\w*)(\s*)\)(?=\s*[-+*&])")
_NAMED_TYPE = re.compile(r"\b(?:typename|class|using)\s+(\w+)|\btypedef\b[^;{}]*?(\w+)\s*;")
_TYPES = frozenset((
    "half", "__half", "nv_bfloat16", "__nv_bfloat16", "bfloat16", "uchar", "ushort", "uint", "ulong", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t", "uintptr_t", "intptr_t", "size_t",
    "ptrdiff_t", "clock_t", "u_int8_t", "u_int16_t", "u_int32_t", "u_int64_t", "u_char", "u_short", "u_int", "u_long",
))  # fmt: skip
_OF_TYPES = frozenset(("int", "char", "long", "short", "unsigned", "signed", "float", "double", "bool", "void", "auto"))
_CAST = "!"  # what stands for the bracket of a cast: it binds as tightly
_SMALLER = re.compile(
    r"(?P<member>(?:\.|->)\s*(?!template\b))?\b(?P<name>[A-Za-z_]\w*)\s*(?<!<)<(?![<=])(?![\w\s:,*]*>\s*\()"
)
_TIMES = re.compile(r"(?<![\w.>:])(?P<name>[A-Za-z_]\w*)\s*\*(?![=*/])")
_AND = re.compile(r"\(\s*(?P<name>[A-Za-z_]\w*)\s*&(?=\s*\()")


def readable(text: str, types: Collection[str] = ()) -> str:
    """The text as the grammar reads it rightly: see :func:`_unbracketed`, :func:`_multiplied` and :func:`_compared`.
    ``types``: those of the file. Every character that stands for another stands in its place, and whoever reads an
    operator reads it in the text itself."""
    # What the text declares, as far as it shows: ``(unsigned char)`` declares nothing.
    variables = {m[1] for m in _DECLARED.finditer(text)} - _OF_TYPES
    text = _unbracketed(text, variables, types)
    return _compared(_multiplied(text, variables - _TYPES - frozenset(types)), variables)


def _multiplied(text: str, variables: Collection[str]) -> str:
    """The text with ``/`` in the place of each ``*`` that multiplies a variable, as the grammar takes ``(v * (u * t)) +
    s`` for ``+s`` as a pointer to functions, and with ``^`` for the ``&`` of ``(v & (u)) + s``. They bind alike, or
    nothing stands between. ``variables``: without names that may be a type's."""

    def put(other: str) -> Callable[[re.Match[str]], str]:
        return lambda m: m[0][:-1] + other if m["name"] in variables else m[0]

    return _AND.sub(put("^"), _TIMES.sub(put("/"), text))


def _compared(text: str, variables: Collection[str]) -> str:
    """The text with ``>`` in the place of each ``<`` that compares, which the grammar takes for the bracket of template
    arguments where a ``>`` follows (``i < n && j > (m)``, ``i < n >> 1``); both bind alike. What stands behind a
    variable, or a member, compares, unless nothing but names and numbers stands between it and ``>(``."""

    def greater(match: re.Match[str]) -> str:
        compares = match["member"] or match["name"] in variables
        return match[0][:-1] + ">" if compares else match[0]

    return _SMALLER.sub(greater, text)


def _unbracketed(text: str, variables: Collection[str], types: Collection[str]) -> str:
    """The text with ``(n) + ...`` as ``n  + ...`` where n is a variable, which the grammar would otherwise take for a
    cast, and ``(T) - ...`` as ``!   - ...`` where T is a type, which it takes for a variable. ``types``: those of the
    file; those that the text itself names are known."""
    types = {*_TYPES, *types, *(m[1] or m[2] for m in _NAMED_TYPE.finditer(text))}.difference(variables)

    def bare(match: re.Match[str]) -> str:
        if match[3] in types and not _asks(text[: match.start()]):
            return match[1] + _CAST + blanked(match[0].lstrip()[1:])
        if match[3] not in variables:
            return match[0]
        return match[1] + " " + match[2] + match[3] + match[4] + " "

    return _BRACKETED.sub(bare, text)


def _asks(before: str) -> bool:
    """Whether brackets stand behind a word that asks about a type."""
    return re.search(r"\b(?:sizeof|alignof|decltype|typeid|__alignof__?)\s*$", before[-16:]) is not None
