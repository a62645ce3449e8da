"""Digests and the identity of hardware. Light: ``fsr lookup`` imports this (no dataclasses, typing or json).

hashlib loads OpenSSL, 2 to 3 ms of the 30 that a lookup may take; the interpreter's own SHA-256 is there at once.
"""

from __future__ import annotations

import os

try:
    from _sha2 import sha256  # type: ignore[import-not-found]  # Python 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

HARDWARE_FIELDS = (
    "vendor", "name", "arch", "sm_count", "memory_bytes", "memory_clock_mhz", "sm_clock_mhz", "power_limit_w",
    "mig",
)  # fmt: skip


def text_digest(data: bytes) -> str:
    """SHA-256 of bytes, in hex."""
    digest: str = sha256(data).hexdigest()
    return digest


def json_digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    import json

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text_digest(text.encode())


def hardware_of(device: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a device's identity that tells one kind of hardware from another (driver left out).

    ``device``: the fields of DeviceInfo."""
    return {field: device.get(field) for field in HARDWARE_FIELDS}


def includes_unchanged(folder: str, includes: Iterable[tuple[str, str]]) -> bool:
    """Whether every included file, (name relative to ``folder``, digest), still has the recorded bytes."""
    for name, digest in includes:
        try:
            with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123  # pathlib costs 4 ms
                if text_digest(file.read()) != digest:
                    return False
        except OSError:
            return False
    return True
