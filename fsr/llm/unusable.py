"""Answers that are no proposal: an ordinary outcome, counted by kind and told in the report."""

from __future__ import annotations

KINDS = {
    "unchanged": "the code came back as it was",
    "duplicate": "a candidate that was proposed before",
    "prose": "words and no code",
    "other language": "code in another language or programming model",
    "wrong entry": "none of the kernels that would be launched is in it",
    "host code": "it launches, allocates or includes host headers",
    "does not apply": "a search block that is not in the file",
    "bad plan": "launch lines that cannot be read",
    "unparsable": "not in the form that was asked for",
    "echo": "the question came back",
    "truncated": "it was cut before its end",
    "illegal choice": "a choice that was not offered",
    "too long": "over the size of any kernel",
    "no CUDA": "it cannot be read as CUDA",
    "guard": "the guard refuses it",
}


class Unusable(Exception):  # noqa: N818  # the model's doing, not a fault
    """Why an answer is no proposal. kind: of KINDS. detail: for the model that is asked again, and for the report."""

    def __init__(self, kind: str, detail: str = "") -> None:
        assert kind in KINDS, kind
        super().__init__(f"{kind}: {detail or KINDS[kind]}")
        self.kind, self.detail = kind, detail or KINDS[kind]
