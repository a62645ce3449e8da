"""Canonical JSON and content hashes: how values are named on disk."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fsr.features.schema import Features
from fsr.records import (
    Basis,
    Candidate,
    Json,
    Launch,
    Outcome,
    Plan,
    Resources,
    ScalarArgument,
    Scratch,
    Status,
    Timing,
)

HASH_PREFIX = "f1"  # bumped when the canonical form changes, so that old and new hashes never meet


def to_json(value: Any) -> Json:
    """A record as plain JSON: dataclasses become objects, enums their value, bytes are refused."""
    if isinstance(value, Features):
        return value.to_json()
    if isinstance(value, enum.Enum):
        return value.name.lower() if isinstance(value, enum.IntEnum) else value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # A launch that is made once is written as before launches could be repeated: hashes stay what they were.
        once = isinstance(value, Launch) and not value.repeated
        names = (f.name for f in dataclasses.fields(value) if not (once and f.name == "repeat"))
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(to_json(value), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def digest(value: Any) -> str:
    """A short content hash (prefix and 20 hex digits, 80 bits) of any JSON-able value or bytes."""
    raw = value if isinstance(value, bytes) else canonical(value).encode()
    return HASH_PREFIX + hashlib.sha256(raw).hexdigest()[:20]


def candidate_hash(candidate: Candidate) -> str:
    """Identity of what would run: source, plan and language; the path that led there does not count."""
    return digest([candidate.source, to_json(candidate.plan), candidate.language])


def plan_from_json(data: Any) -> Plan:
    """The inverse of :func:`to_json` for plans. Raises KeyError or TypeError on damaged data."""
    return Plan(
        launches=tuple(
            Launch(
                entry=launch["entry"],
                grid=tuple(launch["grid"]),
                block=tuple(launch["block"]),
                shared_bytes=launch["shared_bytes"],
                args=tuple(a if isinstance(a, str) else ScalarArgument(a["dtype"], a["value"]) for a in launch["args"]),
                repeat=launch.get("repeat", "1"),
            )
            for launch in data["launches"]
        ),
        scratch=tuple(Scratch(**s) for s in data["scratch"]),
        flags=tuple(data["flags"]),
    )


def candidate_from_json(data: Any) -> Candidate:
    """The inverse of :func:`to_json` for candidates."""
    return Candidate(data["source"], plan_from_json(data["plan"]), tuple(data["actions"]), data["language"])


def outcome_from_json(data: Any) -> Outcome:
    """The inverse of :func:`to_json` for outcomes. Raises KeyError, TypeError or ValueError on damaged data, and on
    features that a newer fsr wrote."""
    timing = data["timing"]
    return Outcome(
        status=Status[data["status"].upper()],
        stage=data["stage"],
        cases=data["cases"],
        passed=data["passed"],
        timing=None
        if timing is None
        else Timing(
            Basis(timing["basis"]),
            timing["median_ns"],
            tuple(timing["samples_ns"]),
            timing["note"],
            tuple(timing.get("each_ns", ())),
        ),
        resources={name: Resources(**value) for name, value in data["resources"].items()},
        features=Features.from_json(data["features"]),
        evidence=data["evidence"],
        seconds=data["seconds"],
    )
