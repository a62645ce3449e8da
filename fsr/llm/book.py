"""The book of a run: every question and answer by its hash, on the disk before it is used.

What was answered once is never asked again: a run that is resumed, or replayed without a model, reads here. Keys are
in no prompt and no answer, so they are not in the book either.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsr.identity import to_json
from fsr.llm.exchange import Answer, Field, ModelFailure, Prompt, Provider
from fsr.llm.ledger import Ledger
from fsr.llm.named import ModelSpec

ANSWERS = "answers.jsonl"


def read_book(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a book, oldest first; damaged lines are left out: they cost an answer, not a run."""
    with suppress(OSError):
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield entry


class Book:
    """The book of one run. Safe to use from several threads. ``path``: None to keep it in memory only; ``ledger``: gets
    what earlier lives of the run have cost; ``source``: another run's book, to replay from."""

    def __init__(self, path: Path | None, ledger: Ledger, source: Path | None = None) -> None:
        self._path, self.ledger, self.replaying = path, ledger, source is not None
        self._lock = threading.Lock()
        self._answers: dict[str, Answer] = {}
        self._codes: list[dict[str, Any]] = []  # answers of earlier lives that were meant to be code, and not refused
        for entry in read_book(source) if source is not None else ():
            self._restore(entry, paid=False)
        for entry in read_book(path) if path is not None else ():
            self._restore(entry, paid=True)

    def ask(self, provider: Provider | None, spec: ModelSpec, prompt: Prompt, cancelled: threading.Event) -> Answer:
        """The answer to a prompt: known, or asked for now and written down. Raises ModelFailure."""
        name = prompt.hash(spec.name)
        known = self._answers.get(name)
        if known is not None:
            self.ledger.replayed(spec.name)
            return known
        if provider is None or self.replaying:
            raise ModelFailure("not recorded", "the run that is replayed did not ask this", final=False)
        ticket = self.ledger.asking(spec, prompt)
        answer: Answer | None = None
        entry = {"kind": "answer", "hash": name, "model": spec.name, "prompt": to_json(prompt)}
        try:
            answer = provider.ask(prompt, cancelled)
            entry["answer"] = to_json(answer)
        except ModelFailure as failure:
            entry |= {"kind": "failure", "failure": failure.kind, "detail": failure.detail}
            raise
        finally:
            self._append(entry)
            self.ledger.asked(ticket, spec.name, answer)
        with self._lock:
            self._answers[name] = answer
        return answer

    def refused(self, name: str, kind: str, detail: str) -> None:
        """Note that an answer was no proposal."""
        self._append({"kind": "refused", "hash": name, "why": kind, "detail": detail})

    def made_from(self, name: str, parent: str) -> None:
        """Note from which candidate (its hash) an answer is to make another."""
        self._append({"kind": "parent", "hash": name, "parent": parent})

    def leftovers(self, used: set[str], model: str) -> list[tuple[Prompt, Answer, str]]:
        """(prompt, answer, hash of the parent) of what an earlier life paid for and did not come to use."""
        found = []
        for entry in self._codes:
            name = entry["hash"]
            if name not in used and entry["model"] == model and "parent" in entry and "refused" not in entry:
                found.append((prompt_from_json(entry["prompt"]), self._answers[name], entry["parent"]))
        return found

    def _restore(self, entry: Mapping[str, Any], *, paid: bool) -> None:
        with suppress(KeyError, TypeError):
            match entry["kind"]:
                case "answer":
                    answer = Answer.from_json(entry["answer"])
                    self._answers[entry["hash"]] = answer
                    if paid:
                        self.ledger.restore(entry["model"], answer)
                        self._codes.append(dict(entry))
                case "failure" if paid:
                    self.ledger.restore(entry["model"], None)
                case "refused" | "parent":
                    for held in self._codes:
                        if held["hash"] == entry["hash"]:
                            held[entry["kind"]] = entry.get("parent", True)

    def _append(self, entry: Mapping[str, Any]) -> None:
        """Best effort on a full disk: the run's own log says so too, and the answer is used all the same."""
        if self._path is None:
            return
        line = json.dumps({"at": round(time.time(), 3), **entry}, separators=(",", ":")).encode() + b"\n"
        with self._lock, suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if file.tell() and not self._ends_whole():
                    file.write(b"\n")
                file.write(line)
                file.flush()
                os.fdatasync(file.fileno())

    def _ends_whole(self) -> bool:
        assert self._path is not None
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def prompt_from_json(data: Mapping[str, Any]) -> Prompt:
    """The inverse of ``to_json`` for prompts that ask for free text or fields. Raises KeyError or TypeError."""
    fields = tuple(Field(f["name"], tuple(f["values"]), f["longest"]) for f in data["fields"])
    rest = {name: data[name] for name in Prompt.__slots__ if name != "fields"}
    return Prompt(**rest, fields=fields)
