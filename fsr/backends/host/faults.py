"""Fault records of the running kernel in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Protocol

from fsr.backends.host.abi import (
    ARITHMETIC,
    FAULT_KINDS,
    ILLEGAL_INSTRUCTION,
    OUT_OF_BOUNDS,
    STACK_OVERFLOW,
    FaultRecord,
)
from fsr.backends.host.lines import Lines
from fsr.records import Fault, FaultKind


class Locator(Protocol):
    """What tells an address in words: the buffers' memory."""

    def locate(self, address: int, bases: Sequence[int]) -> str:
        """Which buffer the address is in or next to, given the regions' addresses in the child."""


def describe(record: FaultRecord, entry: str, lines: Lines, arena: Locator, bases: Sequence[int]) -> Fault:
    """The fault that a launch of ``entry`` ended with."""
    x, y, z = record.block
    who = f"{entry}, block ({x}, {y}, {z}), thread {record.thread}"
    line = record.line or (lines.find([record.pc])[record.pc] if record.pc else None)
    text = record.text.decode(errors="replace")
    if record.kind == OUT_OF_BOUNDS and not text:
        text = f"{'write to' if record.writes else 'read of'} {arena.locate(record.address, bases)}"
    elif record.kind == STACK_OVERFLOW:
        text = "a thread's local variables and calls need more than 256 KiB"
    elif record.kind == ARITHMETIC:
        text = "integer division by zero"
    elif record.kind == ILLEGAL_INSTRUCTION:
        text = "the compiler proved that this point is never reached: undefined behaviour"
    return Fault(FAULT_KINDS.get(record.kind, FaultKind.CRASH), f"{text} ({who})", line)


def died(code: int, entry: str) -> Fault:
    """The child ended without leaving a record."""
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return Fault(FaultKind.CRASH, f"the process running {entry} ended with {how}")
