"""The launch plan in the evidence beside a candidate file: read strictly, since nobody wrote it today."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsr.contract.model import Contract
from fsr.contract.validate import validate
from fsr.errors import ContractError, SourceError
from fsr.expressions import is_floating, parse
from fsr.files import Unreadable, read_file
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import NULL, Launch, Plan, ScalarArgument, Scratch

MOST_LAUNCHES = 256


def stored_plan(candidate: Path, contract: Contract) -> Plan | None:
    """The plan in ``candidate.json``; None when there is no such file.

    Raises SourceError when it is damaged or holds no plan, ContractError when the plan cannot be launched at sizes that
    the contract allows."""
    path = candidate.with_suffix(".json")
    try:
        text = read_file(path)
    except Unreadable as fault:
        if fault.absent:
            return None
        raise _bad(path, f"cannot be read: {fault.why}") from None
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(path, "is no JSON") from None
    found = data.get("best") if isinstance(data, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("plan"), dict):
        raise _bad(path, "holds no plan")
    plan = _Reader(path).plan(found["plan"], contract)
    places = {"launch": str(path)}
    validate(replace(contract, plan=plan), lambda *keys: places.get(str(keys[0]), str(path)) if keys else str(path))
    return plan


def _bad(
    path: Path, why: str, expected: str = "best.plan with launches, scratch and flags, as fsr wrote it"
) -> SourceError:
    return SourceError(
        f"the evidence beside the candidate {why}", expected=expected, where=str(path),
        fix="restore the file that fsr wrote, or move it away to test the candidate under the original's launch",
    )  # fmt: skip


class _Reader:
    """Typed reading of a plan's JSON; every error names the part."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def plan(self, data: Mapping[str, Any], contract: Contract) -> Plan:
        scratch = tuple(
            self.scratch(one, f"scratch {i}") for i, one in enumerate(self.list(data, "scratch", "the plan"))
        )
        arguments = {a.name for a in contract.passed()}
        for one in scratch:
            if one.name in arguments or sum(other.name == one.name for other in scratch) > 1:
                raise _bad(self.path, f"names {one.name!r} twice", "a name of its own for every scratch buffer")
        rows = self.list(data, "launches", "the plan")
        if not 1 <= len(rows) <= MOST_LAUNCHES:
            raise _bad(self.path, f"has {len(rows)} launches", f"1 to {MOST_LAUNCHES}")
        known = arguments | {s.name for s in scratch} | {NULL}
        launches = tuple(self.launch(row, f"launch {i}", known) for i, row in enumerate(rows))
        flags = self.list(data, "flags", "the plan")
        if not all(isinstance(f, str) and f.isprintable() for f in flags):
            raise _bad(self.path, "has flags that are no texts", "a list of compiler flags")
        return Plan(launches, scratch, tuple(flags))

    def launch(self, row: Any, title: str, known: set[str]) -> Launch:
        row = self.table(row, title)
        grid, block = (self.three(row, key, title) for key in ("grid", "block"))
        args = tuple(self.argument(a, title, known) for a in self.list(row, "args", title))
        shared, repeat = (self.expression(row.get(*key), title) for key in (("shared_bytes",), ("repeat", "1")))
        return Launch(self.text(row, "entry", title), grid, block, shared, args, repeat)

    def argument(self, arg: Any, title: str, known: set[str]) -> str | ScalarArgument:
        if isinstance(arg, Mapping):
            if arg.get("dtype") not in BY_DTYPE:
                raise _bad(
                    self.path, f"has a {title} with the dtype {arg.get('dtype')!r}", "one of: " + ", ".join(BY_DTYPE)
                )
            return ScalarArgument(
                arg["dtype"], self.expression(arg.get("value"), title, floating=is_floating(arg["dtype"]))
            )
        if arg not in known if isinstance(arg, str) else True:
            raise _bad(self.path, f"has a {title} with the argument {arg!r}", "one of: " + ", ".join(sorted(known)))
        return str(arg)

    def scratch(self, row: Any, title: str) -> Scratch:
        row = self.table(row, title)
        name, dtype, zeroed = self.text(row, "name", title), row.get("dtype"), row.get("zeroed", False)
        if not isinstance(dtype, str) or dtype not in BY_DTYPE or not isinstance(zeroed, bool):
            raise _bad(self.path, f"has a {title} with the dtype {dtype!r}", "one of: " + ", ".join(BY_DTYPE))
        return Scratch(name, dtype, self.expression(row.get("count"), title), zeroed)

    def three(self, row: Mapping[str, Any], key: str, title: str) -> tuple[str, str, str]:
        parts = self.list(row, key, title)
        if len(parts) != 3:
            raise _bad(self.path, f"has a {title} whose {key} has {len(parts)} parts", "three expressions: x, y, z")
        x, y, z = (self.expression(part, title) for part in parts)
        return x, y, z

    def expression(self, value: Any, title: str, *, floating: bool = False) -> str:
        if not isinstance(value, str):
            raise _bad(
                self.path, f"has a {title} with {value!r} for an expression", 'a text such as "ceil_div(n, 256)"'
            )
        try:
            parse(value, floating)
        except ContractError as fault:
            raise ContractError(fault.what, expected=fault.expected, where=str(self.path), fix=fault.fix) from None
        return value

    def table(self, value: Any, title: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise _bad(self.path, f"has {value!r} for {title}", "an object")
        return value

    def list(self, row: Mapping[str, Any], key: str, title: str) -> list[Any]:
        if not isinstance(row.get(key), list):
            raise _bad(self.path, f"has {row.get(key)!r} for the {key} of {title}", "a list")
        found: list[Any] = row[key]
        return found

    def text(self, row: Mapping[str, Any], key: str, title: str) -> str:
        value = row.get(key)
        if not isinstance(value, str) or not value.strip():
            raise _bad(self.path, f"has {value!r} for the {key} of {title}", "a text")
        return value
