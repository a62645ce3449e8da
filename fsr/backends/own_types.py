"""Names of integer types that a file declares itself and that every compilation has already, as another type.

``typedef long long int64_t;`` is right where nobody includes <stdint.h>, as with NVRTC, and names another type than the
host's headers and the prelude do. There the file's own type goes by a name of its own, so that each means what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_WIDTHS = {8: "char", 16: "short", 32: "int", 64: "long"}


def _known() -> Iterator[tuple[str, str]]:
    """The names that are there before a file is read, and the types that they stand for on Linux."""
    for bits, word in _WIDTHS.items():
        fast = "char" if bits == 8 else "long"
        signed = "signed " if bits == 8 else ""
        yield from ((f"int{bits}_t", signed + word), (f"int_least{bits}_t", signed + word))
        yield from ((f"uint{bits}_t", f"unsigned {word}"), (f"uint_least{bits}_t", f"unsigned {word}"))
        yield from ((f"u_int{bits}_t", f"unsigned {word}"), (f"uint_fast{bits}_t", f"unsigned {fast}"))
        yield f"int_fast{bits}_t", ("signed char" if bits == 8 else "long")
        yield from ((f"u{word}", f"unsigned {word}"), (f"u_{word}", f"unsigned {word}"))
    yield from ((name, "long") for name in ("intptr_t", "intmax_t", "ptrdiff_t"))
    yield from ((name, "unsigned long") for name in ("uintptr_t", "uintmax_t", "size_t"))


KNOWN: Mapping[str, str] = dict(_known())
_NAMES = "|".join(sorted(KNOWN, key=len, reverse=True))
_TYPE = r"(?:(?:unsigned|signed|long|short|int|char)\b\s*)+"
_DECLARED = re.compile(
    rf"\btypedef\s+(?P<type>{_TYPE})\b(?P<name>{_NAMES})\s*;|\busing\s+(?P<new>{_NAMES})\s*=\s*(?P<of>{_TYPE});"
)
_BLANKS = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_INCLUDE = r"(?:(?<=\n)|\A)[ \t]*#[ \t]*include\b[^\n]*"


def renamed(text: str, own: Mapping[str, str]) -> str:
    """A text with names of types replaced, line for line: not in comments, literals and includes, and not what is the
    standard library's (``std::int64_t``)."""
    if not own:
        return text
    word = rf"(?<!std::)\b(?:{'|'.join(own)})\b"
    whole = re.compile(rf"{_INCLUDE}|{_BLANKS.pattern}|(?P<word>{word})", re.DOTALL)
    return whole.sub(lambda found: own[found[0]] if found["word"] else found[0], text)


@lru_cache(maxsize=128)
def own_types(source: str) -> Mapping[str, str]:
    """The names that a file gives another type than they have, by what they are called in their place. Those that it
    declares under a condition, or inside something, are left to the compiler."""
    if not _DECLARED.search(source):
        return {}
    blank = _BLANKS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    found = dict[str, str]()
    for declared in _DECLARED.finditer(blank):
        name, type_ = declared["name"] or declared["new"], declared["type"] or declared["of"]
        if _usual(type_) != KNOWN[name] and _at_file_scope(blank[: declared.start()]):
            found[name] = _free(f"own_{name}", source)
    return found


def _usual(type_: str) -> str:
    """``long unsigned int`` as ``unsigned long``."""
    words = type_.split()
    base = next((w for w in ("char", "short") if w in words), None) or " ".join(["long"] * words.count("long")) or "int"
    sign = "unsigned " if "unsigned" in words else "signed " if base == "char" and "signed" in words else ""
    return sign + base


def _at_file_scope(before: str) -> bool:
    opened = len(re.findall(r"^[ \t]*#[ \t]*if", before, re.MULTILINE))
    closed = len(re.findall(r"^[ \t]*#[ \t]*endif", before, re.MULTILINE))
    return opened == closed and before.count("{") == before.count("}")


def _free(name: str, source: str) -> str:
    while name in source:
        name += "_"
    return name
