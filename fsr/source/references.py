"""Which arguments functions of a text may change: those that they take by reference."""

from __future__ import annotations

import re

from fsr.source.form import Call, Name
from fsr.source.tokens import tokenize
from fsr.source.walk import Block, base_name, walk_exprs

_DEFINED = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^(){};]*&[^(){};]*)\)\s*(?:const\s*)?(?:noexcept\s*)?\{")
# A const before a star is of what a pointer points to: the pointer itself may change.
_BY_REFERENCE = re.compile(r"^(?:.*\*|(?=[^&*]*\w))(?!.*\bconst\b)[\w:<>,\s]*&\s*&?\s*\w*$", re.DOTALL)
_WORDS = frozenset(["if", "while", "for", "switch", "catch", "return"])


def by_reference(text: str) -> frozenset[str]:
    """``name(1`` for the second parameter of a function ``name`` that is a reference to what is not const. Found in the
    text: no word of a program has a bracket in it."""
    if "&" not in text:
        return frozenset()
    told = " ".join(t.text for t in tokenize(text) if t.kind != "directive")
    return frozenset(
        f"{found[1]}({n}"
        for found in _DEFINED.finditer(told)
        if found[1] not in _WORDS
        for n, parameter in enumerate(_separate(found[2]))
        if _BY_REFERENCE.match(parameter.split("=")[0].strip())
    )


def given_by_reference(stmts: Block, known: frozenset[str]) -> frozenset[str]:
    """The variables that calls in the statements may change; ``known``: what :func:`by_reference` gives."""
    calls = ((e.callee.text, e.args) for e in walk_exprs(stmts) if isinstance(e, Call) and isinstance(e.callee, Name))
    given = (a for name, args in calls for n, a in enumerate(args) if f"{name}({n}" in known)
    return frozenset(base_name(a) or "" for a in given)


def _separate(parameters: str) -> list[str]:
    """Parameters at the commas that stand in no template's arguments."""
    found, depth = [""], 0
    for letter in parameters:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found
