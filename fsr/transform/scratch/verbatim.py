"""What verbatim text does with pointers: reaching elements through them, or handing them to functions."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from fsr.analysis.calls import LOADS
from fsr.source.form import KernelForm, OpaqueStmt, Stmt
from fsr.source.mapping import map_stmts
from fsr.source.tokens import close_of, split_commas, tokenize
from fsr.source.walk import opaque_names

_NO_CALLS = frozenset(("if", "while", "for", "switch", "return", "sizeof"))
_BEFORE_STAR = re.compile(r"(?:^|[-+=(,;:?!{}<>|%]|\breturn)\s*\*$")

Calls = set[tuple[str, frozenset[int]]]


def calls_with(text: str, names: Collection[str]) -> Calls | None:
    """The functions that are handed one of some pointers, and in which places; None where one of them is used in any
    other way than to reach an element (``p[i]``, ``*p``, ``*p++``)."""
    calls, handed = _handed(text, names)
    for found in re.finditer(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})\b", text):
        if found.start() in handed:
            continue
        before, behind = text[: found.start()].rstrip(), text[found.end() :].lstrip()
        stepped = re.sub(r"(\+\+|--)$", "", before).rstrip()
        if _BEFORE_STAR.search(stepped):
            continue
        if not (behind.startswith("[") and before == stepped and not before.endswith(("&", "->"))):
            return None
    return None if any(name in LOADS or name.startswith("atomic") for name, _ in calls) else calls


def without_what_is_read(kernel: KernelForm) -> KernelForm:
    """The kernel for analysis: of verbatim statements only the names that they may set, so that the others are known
    for what they are."""
    functions = {one.split("(")[0] for one in kernel.by_reference}

    def change(s: Stmt) -> Stmt:
        if not isinstance(s, OpaqueStmt) or opaque_names(s.text) & (functions | kernel.macro_words):
            return s
        return replace(s, text=" ".join(sorted(n for n in opaque_names(s.text) if _may_set(s.text, n))))

    return replace(kernel, body=map_stmts(kernel.body, change))


def _may_set(text: str, name: str) -> bool:
    word = rf"(?<![\w.]){re.escape(name)}\b"
    behind = r"\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--|\[|\.|->)"
    return re.search(rf"{word}{behind}|(?:\+\+|--|&|\*|[\w>]\s)\s*{word}", text) is not None


def _handed(text: str, names: Collection[str]) -> tuple[Calls, set[int]]:
    """The calls with pointers, and where these stand in the text."""
    calls: Calls = set()
    handed: set[int] = set()
    tokens = tokenize(text)
    for at, token in enumerate(tokens[:-1]):
        if token.kind != "name" or token.text in _NO_CALLS or tokens[at + 1].text != "(":
            continue
        arguments = split_commas(tokens[at + 2 : close_of(tokens, at + 1) or at + 2])
        own = {
            n: a[0] for n, a in enumerate(arguments) if a and a[0].text in names and (len(a) == 1 or a[1].text == "+")
        }
        if own:
            calls.add((token.text, frozenset(own)))
            handed |= {t.start for t in own.values()}
    return calls, handed
