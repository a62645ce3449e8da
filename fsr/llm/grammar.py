"""Grammars of llama.cpp (GBNF) for answers: built from field names and finite lists only, never from a user's text.

llama.cpp does not check a grammar before it uses it, and a bad one ends its process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fsr.llm.exchange import Field

# Free text inside JSON: printable ASCII without quote and backslash, at most this long.
_CHARACTER = r"[ !#-\[\]-~]"
LONGEST = 200


def grammar_of(fields: Sequence[Field]) -> str:
    """The grammar of a JSON object with these fields, in this order; of one closed field, of its values alone, since
    every word that is written costs time (see ``object_of``)."""
    if closed(fields):
        return "root ::= " + " | ".join(_quoted(value) for value in fields[0].values) + "\n"
    rules, parts = [], []
    for number, field in enumerate(fields):
        rule = f"f{number}"
        parts.append(f"{_quoted(json.dumps(field.name) + ': ')} {rule}")
        if field.values:
            rules.append(f"{rule} ::= " + " | ".join(_quoted(json.dumps(value)) for value in field.values))
        else:
            quote = _quoted('"')
            rules.append(f"{rule} ::= {quote} {_CHARACTER}{{1,{min(field.longest, LONGEST)}}} {quote}")
    separator = f" {_quoted(', ')} "
    return f"root ::= {_quoted('{')} {separator.join(parts)} {_quoted('}')}\n" + "\n".join(rules) + "\n"


def closed(fields: Sequence[Field]) -> bool:
    """Whether there is one field, of a list of values."""
    return len(fields) == 1 and bool(fields[0].values)


def object_of(fields: Sequence[Field], text: str) -> str:
    """What was written by ``grammar_of(fields)`` as the JSON object that the prompt asks for."""
    return json.dumps({fields[0].name: text.strip()}) if closed(fields) else text


def _quoted(text: str) -> str:
    """A GBNF literal. Raises ValueError for what is not printable ASCII."""
    if not text.isascii() or not text.isprintable():
        raise ValueError(f"{text!r} in a grammar")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
