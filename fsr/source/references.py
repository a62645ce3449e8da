"""Which arguments functions of a text may change: those that they take by reference."""

from __future__ import annotations

import re

from fsr.source.tokens import tokenize

_DEFINED = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^(){};]*&[^(){};]*)\)\s*(?:const\s*)?(?:noexcept\s*)?\{")
_BY_REFERENCE = re.compile(r"^(?!.*\bconst\b)[\w:<>,\s]*\w[\w:<>,\s]*&\s*&?\s*\w*$", re.DOTALL)
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
