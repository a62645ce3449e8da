"""A winner as it is stored: the whole key inside the entry, a digest over it all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fsr.cache.digest import text_digest
from fsr.cache.key import CacheKey


@dataclass(frozen=True, slots=True)
class Entry:
    """A winner.

    key: what it was found for. basis: 'measured' or 'predicted'. device: the fields of DeviceInfo.
    files: name to text of what a build uses (the output file, the launcher header if any).
    evidence: what `refine --json` told of it. candidate: its JSON form, where the next run starts.
    """

    key: CacheKey
    basis: str
    device: Mapping[str, Any]
    files: Mapping[str, str]
    evidence: Mapping[str, Any]
    candidate: Mapping[str, Any]

    def to_body(self) -> str:
        """The stored JSON."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_body(body: str, digest: str) -> Entry | None:
    """The entry of a stored body, or None when it is damaged: a damaged entry is a miss, never an error."""
    if not isinstance(body, str) or text_digest(body.encode()) != digest:
        return None
    try:
        data = json.loads(body)
        key = data["key"]
        key["includes"] = tuple((name, value) for name, value in key["includes"])
        key["flags"], key["given"] = tuple(key["flags"]), tuple(key.get("given", ()))
        return Entry(CacheKey(**key), data["basis"], data["device"], data["files"], data["evidence"], data["candidate"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
