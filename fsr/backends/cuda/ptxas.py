"""Reads the resource report that ``ptxas -v`` writes into a compiler log."""

from __future__ import annotations

import re

from fsr.records import Resources

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(log: str) -> dict[str, Resources]:
    """Resources by lowered symbol. Spills count stores plus loads in bytes; local memory is the stack frame,
    spilled registers included."""
    found: dict[str, Resources] = {}
    entry, function, stack = "", "", {}
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif match := _STACK.search(line):
            stack[function] = (int(match[1]), int(match[2]) + int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            local, spills = stack.get(entry, (None, None))
            found[entry] = Resources(int(match[1]), spills, int(shared[1]) if shared else 0, local)
            entry = ""
    return found
