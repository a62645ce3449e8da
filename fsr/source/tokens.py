"""C++ text as tokens with offsets: enough to find where declarations begin and end, whatever they hold."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from fsr.source.conditionals import ELSE, directive_name, endif_of, follow_conditional
from fsr.source.token import Token as Token

# Blanks before a token are passed over with it. A name that may begin a literal is looked at last, as a ``word``.
_TOKEN = re.compile(
    r"""[ \t]*(?:(?P<name>(?!(?:u8|[uUL])?R?["'])[A-Za-z_$][\w$]*)
    |(?P<space>(?:[\s\ufeff]|\\\r?\n)+)
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<string>(?:u8|[uUL])?R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
               |(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<punct><<<|>>>|::|->|\#\#|.))""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r'#(?:\\\r?\n|"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|[^\n])*', re.DOTALL)
_SPLICED_END = re.compile(r"(?<![\s\\])(?:\s|\\\r?\n)*\Z")  # blanks, and a splice to a line of nothing else
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_KEPT_LENGTH = 1 << 15  # characters of the longest text whose tokens are kept
_COUNTED = 1 << 12  # characters of the longest text whose line breaks are counted each time


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; comments and blanks are left out, preprocessor lines are one token each."""
    return list(_tokens(text) if len(text) <= _KEPT_LENGTH else _found(text))


@lru_cache(maxsize=128)  # the guard, the readers and the generators of cases all ask for the same few texts
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(_found(text))


def _found(text: str) -> list[Token]:
    found: list[Token] = []
    position: int | None = 0
    while position is not None:
        position = _up_to_directive(text, position, found)
    return found


def _up_to_directive(text: str, position: int, found: list[Token]) -> int | None:
    """Add the tokens up to the next preprocessor line, and that line; where it ends, or None at the text's end."""
    fresh = True  # nothing but blanks so far on this line
    for match in _TOKEN.finditer(text, position):
        kind = match.lastgroup or "punct"
        if kind == "space" or kind == "comment":
            fresh = fresh or "\n" in match[kind]
            continue
        part, start = match[kind], match.start(kind)
        if fresh and part[0] == "#":
            line = _DIRECTIVE.match(text, start)
            assert line is not None
            found.append(Token("directive", _SPLICED_END.sub("", line.group()), start))
            return line.end()
        fresh = False
        found.append(Token("name" if kind == "word" else kind, part, start))
    return None


def close_of(tokens: Sequence[Token], at: int) -> int | None:
    """The index of the token that closes the bracket at index ``at``; None when it never closes.

    Branches of ``#if`` inside are counted once: at ``#else`` the depth goes back to what it was at ``#if``.
    """
    opening, closing, depth = tokens[at].text, _CLOSES[tokens[at].text], 0
    at_if: list[int] = []
    index = at
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "directive":
            if not at_if and directive_name(token.text) in ELSE:  # the #if stands before the bracket
                index = endif_of(tokens, index)
            else:
                depth = follow_conditional(token.text, depth, at_if)
        elif token.kind == "punct":
            depth += (token.text == opening) - (token.text == closing)
            if depth == 0:
                return index
        index += 1
    return None


def assembly_of(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int | None]]:
    """Of each assembly statement the index of its word, of the bracket behind it, and of the one that closes that; None
    for the last where there is none."""
    for index, token in enumerate(tokens):
        if token.text not in ("asm", "__asm", "__asm__"):
            continue
        at = index + 1
        while at < len(tokens) and tokens[at].text in ("volatile", "__volatile__", "goto", "inline"):
            at += 1
        yield index, at, close_of(tokens, at) if at < len(tokens) and tokens[at].text == "(" else None


def close_angle(tokens: Sequence[Token], at: int) -> int | None:
    """The index of the ``>`` (or ``>>>``) that closes the ``<`` at ``at``; None when it is no template list."""
    depth, index = 0, at
    while index < len(tokens):
        text = tokens[index].text
        if text in _CLOSES:
            inner = close_of(tokens, index)
            if inner is None:
                return None
            index = inner
        elif text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return index
        elif text in (";", "}", ")"):
            return None
        index += 1
    return None


def line_of(text: str, offset: int) -> int:
    """The 1-based line of an offset."""
    if len(text) < _COUNTED:
        return text.count("\n", 0, offset) + 1
    return bisect_left(_line_ends(text), offset) + 1


@lru_cache(maxsize=4)
def _line_ends(text: str) -> list[int]:
    """Offsets of the line breaks: a long file is asked for its lines once for each thing that it declares."""
    return [found.start() for found in re.finditer("\n", text)]


def split_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between top-level commas; brackets and template lists are kept whole. [] for no tokens."""
    parts: list[list[Token]] = [[]] if tokens else []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        stop = index
        if token.text in _CLOSES:
            stop = close_of(tokens, index) or len(tokens) - 1
        elif token.text == "<" and index and tokens[index - 1].kind == "name":
            stop = close_angle(tokens, index) or index
        if token.text == "," and stop == index:
            parts.append([])
        else:
            parts[-1].extend(tokens[index : stop + 1])
        index = stop + 1
    return parts


def skeleton(text: str) -> str:
    """The text with comments, strings and preprocessor lines blanked, every other character where it was."""
    return _without(text, ("directive", "string"))


def uncommented(text: str) -> str:
    """The text with comments blanked (but for those in preprocessor lines), every other character where it was."""
    return _without(text, ())


def _without(text: str, kinds: Collection[str]) -> str:
    out, end = [], 0
    for token in tokenize(text):
        if token.kind not in kinds:
            out += [blanked(text[end : token.start]), token.text]
            end = token.end
    return "".join([*out, blanked(text[end:])])


def renamed(text: str, old: str, new: str) -> str:
    """Every name token ``old`` as ``new``, members of structures left alone; the rest byte for byte."""
    parts, position, before = list[str](), 0, ""
    for token in tokenize(text):
        if token.kind == "name" and token.text == old and before not in (".", "->"):
            parts += [text[position : token.start], new]
            position = token.end
        before = token.text
    return "".join([*parts, text[position:]])


def blanked(text: str) -> str:
    """Blanks in the place of everything but line breaks."""
    return re.sub(r"[^\n]", " ", text)


def spelt(tokens: Sequence[Token]) -> str:
    """The tokens as text, blanks only where two words would run together."""
    out: list[str] = []
    for token in tokens:
        if out and re.match(r"\w", out[-1][-1]) and re.match(r"\w", token.text):
            out.append(" ")
        out.append(token.text)
    return "".join(out)


def source_of(text: str, parts: Iterable[Sequence[Token]]) -> list[str]:
    """Runs of tokens as they stand in the text."""
    return [text[part[0].start : part[-1].end] if part else "" for part in parts]
