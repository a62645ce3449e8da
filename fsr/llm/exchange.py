"""What is asked of a model and what comes back: frozen values, the same for every provider."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fsr.identity import digest
from fsr.records import Json


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a JSON answer. ``values``: what it may be, () for a text of at most ``longest`` characters."""

    name: str
    values: tuple[str, ...] = ()
    longest: int = 300


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question. role, style and version: which prompt function wrote it. fields: of the JSON object that the answer
    must be, () for free text. most_tokens: of the answer. sample: 0 for the first time that a run asks this, then 1;
    equal questions are asked again only to get another answer."""

    role: str
    style: str
    version: int
    system: str
    user: str
    fields: tuple[Field, ...] = ()
    most_tokens: int = 1024
    sample: int = 0

    def hash(self, model: str) -> str:
        """The name under which an answer of the model is kept."""
        asked: Json = [self.system, self.user, self.form(), self.most_tokens, self.sample, model]
        return digest(asked)

    def form(self) -> Json:
        """The fields as JSON schema; None for free text."""
        if not self.fields:
            return None
        properties: dict[str, Json] = {
            f.name: {"type": "string", "enum": list(f.values)} if f.values else {"type": "string"} for f in self.fields
        }
        names: list[Json] = [f.name for f in self.fields]
        return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said. stop: 'stop', 'length' where it was cut at its limit, 'cut' where the stream broke off.
    counted: the tokens are the provider's own count, not estimated from the text. dollars: None where no price is
    known (a local model's is 0)."""

    text: str
    tokens_in: int
    tokens_out: int
    seconds: float
    stop: str = "stop"
    counted: bool = True
    dollars: float | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """The inverse of ``to_json``. Raises KeyError or TypeError for damaged data."""
        return cls(**{name: data[name] for name in cls.__slots__})


class ModelFailure(Exception):  # noqa: N818  # an ordinary event of a run, told and counted
    """No answer came. kind: 'time-out', 'rate limit', 'server', 'connection', 'refused', 'died', 'too long',
    'unreadable', 'cap', 'cancelled', 'not recorded'. final: asking again is useless, in this run."""

    def __init__(self, kind: str, detail: str, *, final: bool = False) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail, self.final = kind, detail, final


class Provider(Protocol):
    """One model that answers. Safe to use from several threads; whatever it costs is in its answers."""

    @property
    def name(self) -> str:
        """Stable and unique in a run, without any secret: 'gpt-x@api.example.com', 'local:SmolLM2'."""

    def ask(self, prompt: Prompt, cancelled: threading.Event) -> Answer:
        """The answer; returns soon after ``cancelled`` is set. Raises ModelFailure."""

    def close(self) -> None:
        """End what was started; an ``ask`` that goes on in another thread fails."""
