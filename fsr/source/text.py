"""Scanning CUDA text without parsing it: comments, strings, directives, balanced brackets, where kernels stand.

The grammar stumbles on attributes and pragmas in places that are ordinary CUDA. They are blanked out here, byte
for byte, before the grammar sees the text, and handed to the parser as :class:`Blank` instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    |(?P<directive>^[ \t]*\#(?:\\\r?\n|[^\n])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NUMBER_QUOTE = re.compile(rb"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")  # 1'000'000 is no character literal
_ATTRIBUTE = re.compile(
    rb"\b(?:(?P<call>__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|__align__|alignas|__attribute__"
    rb"|_Pragma)\s*(?=\()|(?P<word>__forceinline__|__noinline__|__grid_constant__)\b)"
)
_PRAGMA = re.compile(rb"^[ \t]*#[ \t]*pragma\b")
_CLOSE = {ord("("): ord(")"), ord("{"): ord("}"), ord("["): ord("]")}


@dataclass(frozen=True, slots=True)
class Blank:
    """Text taken out: its byte range, the text, and what it is ('pragma' or the attribute's name)."""

    start: int
    end: int
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Located:
    """A __global__ function definition: byte ranges of the whole and of the braced body (braces included)."""

    start: int
    end: int
    body: int


def blanked(data: bytes, start: int, end: int) -> bytes:
    """``data`` with the range replaced by spaces, newlines kept, so that offsets and lines stay."""
    return data[:start] + re.sub(rb"[^\n]", b" ", data[start:end]) + data[end:]


def skeleton(data: bytes) -> bytes:
    """The text with comments, string contents and preprocessor directives blanked: only code remains."""
    out = bytearray(_NUMBER_QUOTE.sub(b"0", data))
    for match in _TOKEN.finditer(bytes(out)):
        out[match.start() : match.end()] = re.sub(rb"[^\n]", b" ", match.group())
    return bytes(out)


def close_of(code: bytes, at: int) -> int | None:
    """The offset of the bracket that closes the one at ``at`` in skeleton text; None when it never closes."""
    opening, closing, depth = code[at], _CLOSE[code[at]], 0
    for offset in range(at, len(code)):
        if code[offset] == opening:
            depth += 1
        elif code[offset] == closing:
            depth -= 1
            if depth == 0:
                return offset
    return None


def blanks(data: bytes) -> tuple[bytes, list[Blank]]:
    """The text as the grammar takes it, and what was taken out, in order."""
    code, out = skeleton(data), data
    found = [
        Blank(match.start(), match.end(), _decode(match.group()).strip(), "pragma")
        for match in _TOKEN.finditer(_NUMBER_QUOTE.sub(b"0", data))
        if match["directive"] and _PRAGMA.match(match["directive"])
    ]
    for match in _ATTRIBUTE.finditer(code):
        end = match.end()
        if match["call"]:
            close = close_of(code, match.end())
            if close is None:
                continue
            end = close + 1
        kind = _decode(match["call"] or match["word"])
        text = _decode(data[match.start() : end])
        if kind == "_Pragma":
            kind, text = "pragma", "#pragma " + text[text.find('"') + 1 : text.rfind('"')]
        found.append(Blank(match.start(), end, text, kind))
    for blank in found:
        out = blanked(out, blank.start, blank.end)
    return out, sorted(found, key=lambda b: b.start)


_DECLARED = re.compile(
    rb"(?<![\w.])(?!return\b|typename\b|class\b|struct\b|else\b|goto\b)[A-Za-z_][\w:>]*[\s*&]+([A-Za-z_]\w*)\s*(?=[=;,)\[{])"
)
_BRACKETED = re.compile(rb"(?<![\w\])>])(\s*)\((\s*)([A-Za-z_]\w*)(\s*)\)(?=\s*[-+*&])")


def unbracketed(data: bytes) -> bytes:
    """The text with ``(n) + ...`` as ``n  + ...`` where n is a variable of the text, which the grammar would otherwise
    take for a cast; every other byte stays where it is."""
    variables = {m[1] for m in _DECLARED.finditer(data)}

    def bare(match: re.Match[bytes]) -> bytes:
        if match[3] not in variables:
            return match[0]
        return match[1] + b" " + match[2] + match[3] + match[4] + b" "

    return _BRACKETED.sub(bare, data)


def locate_kernels(data: bytes) -> list[Located]:
    """Every __global__ function definition (declarations are passed over), in order."""
    return locate(data, rb"\b__global__\b")


def locate(data: bytes, marker: bytes) -> list[Located]:
    """Every function definition whose specifiers hold ``marker`` (a regular expression), in order."""
    code, found = skeleton(data), list[Located]()
    plain = _first_branches(data, code)
    for match in re.finditer(marker, code):
        if found and match.start() < found[-1].end:
            continue
        body = _body_after(code, match.end())
        if body is None:
            continue
        close = close_of(plain if plain[body : body + 1] == b"{" else code, body)
        if close is not None:
            found.append(Located(_start_before(data, code, match.start()), close + 1, body))
    return found


def _first_branches(data: bytes, code: bytes) -> bytes:
    """Skeleton text with #else and #elif branches blanked: each branch may open brackets of its own."""
    out, skipping, start = code, 0, 0
    for match in re.finditer(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", data, re.MULTILINE):
        word = match[1]
        if skipping:
            skipping += word.startswith(b"if")
            skipping -= word == b"endif"
            if skipping == 0:
                out = blanked(out, start, match.start())
        elif word in (b"else", b"elif"):
            skipping, start = 1, match.start()
    return out


def _body_after(code: bytes, at: int) -> int | None:
    depth = 0
    for offset in range(at, len(code)):
        char = code[offset]
        depth += (char == ord("(")) - (char == ord(")"))
        if depth == 0 and char == ord(";"):
            return None
        if depth == 0 and char == ord("{"):
            return offset
    return None


def _start_before(data: bytes, code: bytes, at: int) -> int:
    """Where the definition begins: after the previous ; { } or directive, blanks and comments skipped."""
    start: int = max(code.rfind(c, 0, at) for c in (b";", b"{", b"}")) + 1
    while start < at:
        match = _TOKEN.match(data, start)
        if match and not match["string"]:
            start = match.end()
        elif data[start : start + 1].isspace():
            start += 1
        else:
            break
    return start


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
