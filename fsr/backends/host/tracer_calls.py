"""Calls of the tracer (fsr/emulator/runtime/tracer.cpp) in an instrumented unit, and what the unit has to declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

FIRST_NAMED = 16  # tracer.h: kNamed


@dataclass
class Unit:
    """Names of operations by number, what cannot be followed, declarations; how many names of our own there are."""

    operations: dict[str, int] = field(default_factory=dict)
    blind: dict[str, None] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)  # declarations
    fresh: int = 0
    joins: int = 0
    structures: dict[str, int] = field(default_factory=dict)  # bytes of those whose fields are of one size

    def number(self, name: str) -> int:
        return self.operations.setdefault(name, FIRST_NAMED + len(self.operations))

    def call(self, name: str, result: str, args: Sequence[tuple[str, str]]) -> str:
        """A call of the tracer; args: type and text of each."""
        typed = [f"{t} zeroext" if t in ("i1", "i8", "i16") else t for t, _ in args]
        self.used[name] = f"declare {result} @{name}({', '.join(typed)})"
        return f"call {result} @{name}({', '.join(f'{t} {v}' for t, (_, v) in zip(typed, args, strict=True))})"
