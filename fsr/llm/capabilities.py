"""What an end point can do, found out once, by being refused, and remembered in a file.

A structured answer is asked for in the strictest form that the end point takes: a JSON schema, else any JSON object,
else a grammar (llama.cpp's), else plain text that is parsed and asked for again.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

FORMS = ("json_schema", "json_object", "grammar", "plain")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """form: of FORMS. limit: the parameter that bounds an answer, '' for none. Others: whether it may be sent."""

    form: str = FORMS[0]
    limit: str = "max_completion_tokens"
    temperature: bool = True
    seed: bool = True
    system: bool = True
    stream: bool = True
    usage: bool = True  # stream_options.include_usage

    def without(self, refusal: str, *, structured: bool) -> Capabilities | None:
        """What is left after a refusal with these words; None where they blame nothing that could be left out.
        ``structured``: the question asked for a form."""
        words = refusal.lower()
        if "max_completion_tokens" in words and self.limit == "max_completion_tokens":
            return replace(self, limit="max_tokens")
        if "max_tokens" in words and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens" if "completion" in words else "")
        for name, marks in _BLAMED.items():
            if getattr(self, name) and any(mark in words for mark in marks):
                left: dict[str, Any] = {name: False}
                return replace(self, **left)
        if structured and self.form != FORMS[-1]:
            return self.next_form()
        return None

    def next_form(self) -> Capabilities:
        """With the next looser form."""
        return replace(self, form=FORMS[min(FORMS.index(self.form) + 1, len(FORMS) - 1)])


_BLAMED = {
    "usage": ("stream_options", "include_usage"),
    "temperature": ("temperature",),
    "seed": ("'seed'", '"seed"', "seed is", "parameter seed", "`seed`"),
    "system": ("system role", "system message", "role 'system'", 'role "system"', "role system"),
    "stream": ("stream",),
}


class Remembered:
    """The capabilities of end points in a JSON file; a file that cannot be read or written is as good as none."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()

    def get(self, endpoint: str) -> Capabilities:
        """What is known of an end point; everything is tried where nothing is."""
        known = {f.name for f in fields(Capabilities)}
        try:
            return Capabilities(**{k: v for k, v in self._read()[endpoint].items() if k in known})
        except (KeyError, TypeError, AttributeError):
            return Capabilities()

    def put(self, endpoint: str, found: Capabilities) -> None:
        """Remember."""
        if self._path is None:
            return
        with self._lock, suppress(OSError):
            held = self._read() | {endpoint: asdict(found)}
            draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(held, indent=1, sort_keys=True))
            draft.replace(self._path)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            assert self._path is not None
            held = json.loads(self._path.read_text())
        except (OSError, ValueError, AssertionError):
            return {}
        return held if isinstance(held, dict) else {}
