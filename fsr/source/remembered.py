"""Answers about nodes of a form, kept for the very nodes that were asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_MOST = 20_000  # nodes, for each question
_Answer = TypeVar("_Answer")


def remembered(ask: Callable[[Any], _Answer]) -> Callable[[Any], _Answer]:
    """A question whose answers are kept: nodes never change, and moves ask again and again. By identity, since to
    compare nodes is to walk them."""
    kept = dict[int, tuple[Any, _Answer]]()

    def asked(node: Any) -> _Answer:
        found = kept.get(id(node))
        if found is None:
            if len(kept) >= _MOST:
                kept.clear()
            found = kept[id(node)] = node, ask(node)  # the node is held, so that no other one gets its number
        return found[1]

    return asked
