"""What one role asks of the Coder: a step to carry out, read from a small JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsr.llm.exchange import Field
from fsr.llm.unusable import Unusable

LONGEST = 600


@dataclass(frozen=True, slots=True)
class Directive:
    """A step in words. said: the fields that it was made from. by: the role."""

    by: str
    said: Mapping[str, str]

    @property
    def words(self) -> str:
        """The step as the Coder reads it."""
        return "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in self.said.items())


def read_fields(text: str, fields: Sequence[Field]) -> dict[str, str]:
    """The JSON object in an answer, its values bounded and, where there is a list, of the list. Raises Unusable."""
    told = _object(text)
    found = {}
    for field in fields:
        value = told.get(field.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise Unusable("unparsable", f"no field {field.name!r}")
        if field.values and value not in field.values:
            raise Unusable("illegal choice", f"{field.name} is {value[:40]!r}")
        found[field.name] = " ".join(value.split())[:LONGEST]
    return found


def _object(text: str) -> Mapping[str, object]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at != -1:
        try:
            told, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(told, dict):
            return told
        at = text.find("{", at + 1)
    raise Unusable("unparsable", f"{text[:60]!r} holds no JSON object")
