"""Macros of a text: the one reader of ``#define``, and expansion for analysis; compilers get what stands written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fsr.source.tokens import Token, close_of, source_of, split_commas, tokenize

_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^()]*)\))?(.*)", re.DOTALL)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STATEMENT = re.compile(r"^(?:for|while|if|do)\b|[;{]")
_QUALIFIERS = ("", "__restrict__", "__restrict", "restrict")
_CUDA = re.compile(r"^\(?\s*(?:threadIdx|blockIdx|blockDim|gridDim)\s*\.\s*[xyz]\s*\)?$|^__\w+\s*\([^;{}]*\)$")
_QUALIFYING = frozenset(("__shared__", "__restrict__", "__restrict", "restrict", "const", "volatile", "static",
                         "__constant__", "extern", "register"))  # fmt: skip
_LIMIT = 200_000  # characters: past this an expansion is a bomb, not a help


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro. ``params``: None for an object-like one; the last is ``...`` for a variadic one. ``body``: without
    comments, on one line."""

    name: str
    params: tuple[str, ...] | None
    body: str

    def applied(self, args: Sequence[str]) -> str | None:
        """The body with the arguments in place, ``#`` and ``##`` carried out; None when their number is wrong."""
        params = self.params or ()
        if params and params[-1].endswith("..."):
            at = len(params) - 1
            if len(args) < at:
                return None
            params = (*params[:at], params[at].removesuffix("...").strip() or "__VA_ARGS__")
            args = [*args[:at], ", ".join(args[at:])]
        elif params == () or len(args) != len(params):
            return self.body if not params and not any(args) else None
        bound = dict(zip(params, args, strict=True))
        body = re.sub(r"(?<!#)#\s*([A-Za-z_]\w*)", lambda m: f'"{bound[m[1]]}"' if m[1] in bound else m[0], self.body)
        body = re.sub(r"[A-Za-z_]\w*", lambda m: bound.get(m[0], m[0]), body)
        return re.sub(r"\s*##\s*", "", body)


def read_define(directive: str) -> Macro | None:
    """What a ``#define`` line says; None for any other directive."""
    match = _DEFINE.fullmatch(directive)
    if match is None:
        return None
    listed, body = (None if part is None else re.sub(r"\\\r?\n", " ", part) for part in (match[2], match[3]))
    params = None if listed is None else tuple(p.strip() for p in listed.split(",") if p.strip())
    return Macro(match[1], params, _COMMENT.sub(lambda m: m[1] or " ", body or "").strip())


@lru_cache(maxsize=64)
def macros(text: str) -> tuple[Macro, ...]:
    """Every ``#define`` of a text, in order; one that is defined again stands there again."""
    return macros_of(tokenize(text)) if "define" in text else ()


def macros_of(tokens: Iterable[Token]) -> tuple[Macro, ...]:
    """As :func:`macros`, of a text that is tokens already."""
    found = (read_define(token.text) for token in tokens if token.kind == "directive")
    return tuple(macro for macro in found if macro is not None)


@lru_cache(maxsize=64)
def macro_words(text: str) -> frozenset[str]:
    """The names of a text's macros, and every name that their bodies mention: a new variable of such a name would be
    taken for the macro, or by it."""
    return frozenset(word for m in macros(text) for word in (m.name, *re.findall(r"[A-Za-z_]\w*", m.body)))


@lru_cache(maxsize=64)
def reached_by_macros(text: str) -> frozenset[str]:
    """The names that bodies of a text's macros mention, parameters of theirs aside: what a kernel does with a variable
    of such a name need not all show in it."""
    return frozenset(
        word for m in macros(text) for word in set(re.findall(r"[A-Za-z_]\w*", m.body)) - set(m.params or ())
    )


def qualifying(text: str) -> frozenset[str]:
    """The macros that stand for nothing or for a pointer's qualifier, whichever of their definitions holds."""
    found = macros(text)
    return frozenset(m.name for m in found) - {
        m.name for m in found if m.params is not None or m.body not in _QUALIFIERS
    }


def spelling(word: str, text: str) -> frozenset[str]:
    """The macros without parameters that stand for qualifiers of which the word is one, by whichever definition:
    ``#define HD __host__ __device__``."""
    found = [m for m in macros(text) if m.params is None and re.fullmatch(r"[\w\s]*", m.body)]
    return frozenset(m.name for m in found if word in m.body.split())


def function_macros(text: str) -> dict[str, Macro]:
    """The macros that :func:`expand` can expand: function-like, defined exactly once, no ``#``, no ``...``."""
    found = [m for m in macros(text) if m.params is not None]
    names = [m.name for m in found]
    return {m.name: m for m in found if names.count(m.name) == 1 and "#" not in m.body and "..." not in str(m.params)}


def statement_macros(text: str) -> dict[str, Macro]:
    """The macros, defined once, that are no expressions: heads of loops (``CUDA_KERNEL_LOOP(i, n)``), guards, several
    statements, a loop's body by name (``SWEEP;``), and those that stand for one of these. The grammar makes nothing of
    them."""
    known = function_macros(text) | _named_alone(text)
    found = {name: m for name, m in known.items() if _STATEMENT.search(m.body)}
    while more := {n: m for n, m in known.items() if n not in found and any(_uses(m, known[o]) for o in found)}:
        found |= more
    return found


def _named_alone(text: str) -> dict[str, Macro]:
    """The object-like macros that are defined once and stand for something."""
    listed = [m for m in macros(text) if m.params is None]
    names = [m.name for m in macros(text)]
    return {m.name: m for m in listed if names.count(m.name) == 1 and m.body and "#" not in m.body}


def spelled_otherwise(text: str) -> dict[str, Macro]:
    """The object-like macros, defined once, by which a file calls what CUDA has its own words for: qualifiers and
    nothing at all, ids of threads, calls of its functions (``#define FENCE __syncthreads()``), and others of these."""
    listed = [m for m in macros(text) if m.params is None]
    names = [m.name for m in listed]
    known = {m.name: m for m in listed if names.count(m.name) == 1 and "#" not in m.body}
    found = {n: m for n, m in known.items() if _CUDA.search(m.body) or set(m.body.split()) <= _QUALIFYING}
    while more := {n: m for n, m in known.items() if n not in found and set(m.body.split()) & found.keys()}:
        found |= more
    return found


def _uses(macro: Macro, other: Macro) -> bool:
    return re.search(rf"\b{other.name}\b" + ("" if other.params is None else r"\s*\("), macro.body) is not None


def expand(text: str, known: Mapping[str, Macro] | None = None) -> str:
    """The text with its own function-like macros expanded, or those that are known (but for what names a member),
    inside out, a bounded number of times."""
    known = function_macros(text) if known is None else known
    for _ in range(8):
        changed = _once(text, known)
        if changed == text or len(changed) > _LIMIT:
            break
        text = changed
    return text


def _once(text: str, known: Mapping[str, Macro]) -> str:
    tokens = tokenize(text)
    out: list[str] = []
    position = index = 0
    while index < len(tokens):
        found = _use(text, tokens, index, known)
        if found is not None:
            written, last = found
            out.append(text[position : tokens[index].start] + written)
            position, index = tokens[last].end, last
        index += 1
    return "".join(out) + text[position:]


def _use(text: str, tokens: Sequence[Token], index: int, known: Mapping[str, Macro]) -> tuple[str, int] | None:
    """What the macro at a token stands for, and the index of the last token that is its use's; None where none is."""
    macro = known.get(tokens[index].text) if tokens[index].kind == "name" else None
    if macro is None:
        return None
    if macro.params is None:
        return (macro.body, index) if not index or tokens[index - 1].text not in (".", "->") else None
    if index + 1 == len(tokens) or tokens[index + 1].text != "(":
        return None
    close = close_of(tokens, index + 1)
    written = None if close is None else macro.applied(source_of(text, split_commas(tokens[index + 2 : close])))
    return None if close is None or written is None else (written, close)
