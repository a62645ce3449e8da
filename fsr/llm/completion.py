"""The body of a chat completion as it comes in: server-sent events or one JSON object, whatever the server sends.

What a server says is not believed: its length is bounded, damaged events are an unreadable answer and no crash, and the
first choice is taken whoever asked for how many.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fsr.llm.exchange import ModelFailure

MOST_BYTES = 4 << 20  # of a body: a kernel has a tenth of the 256 KiB that the guard takes
MOST_CHARACTERS = 400_000  # of an answer


@dataclass(slots=True)
class Body:
    """Fed with bytes, holds the text so far. ``stop``: '' until the server says why it ended."""

    events: bool
    text: str = ""
    stop: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    done: bool = False
    _rest: bytes = b""
    _bytes: int = 0
    _whole: list[bytes] = field(default_factory=list)

    def feed(self, part: bytes) -> None:
        """More bytes. Raises ModelFailure when it is too long or makes no sense."""
        self._bytes += len(part)
        if self._bytes > MOST_BYTES or len(self.text) > MOST_CHARACTERS:
            raise ModelFailure("too long", f"the answer has over {self._bytes} bytes")
        if not self.events:
            self._whole.append(part)
            return
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._line(line.strip())

    def end(self) -> None:
        """The connection is at its end. Raises ModelFailure likewise."""
        if self.events:
            self._line(self._rest.strip())
        else:
            whole = b"".join(self._whole)
            self._take(_loaded(whole, "the answer"))

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:") or self.done:
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self.done = True
        elif data:
            self._take(_loaded(data, "an event"))

    def _take(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise ModelFailure("unreadable", "the answer is no JSON object")
        if data.get("error"):
            raise ModelFailure("server", str(data["error"])[:300])
        usage = data.get("usage")
        if isinstance(usage, dict):
            self.tokens_in = _count(usage.get("prompt_tokens"), self.tokens_in)
            self.tokens_out = _count(usage.get("completion_tokens"), self.tokens_out)
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (0, None):
            return
        said = choice.get("delta") or choice.get("message") or {}
        content = said.get("content") if isinstance(said, dict) else None
        self.text += content if isinstance(content, str) else ""
        self.stop = str(choice.get("finish_reason") or self.stop)


def _loaded(data: bytes, what: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ModelFailure("unreadable", f"{what} is no JSON: {data[:60]!r}") from None


def _count(value: object, before: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else before
