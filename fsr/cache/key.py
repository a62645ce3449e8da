"""What a cached result depends on. Standard library alone: ``fsr lookup`` imports this.

Everything that changes the answer is in the key; samples, clocks, seeds and dates are stored beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
HARDWARE_FIELDS = (
    "vendor", "name", "arch", "sm_count", "memory_bytes", "memory_clock_mhz", "sm_clock_mhz", "power_limit_w",
    "mig",
)  # fmt: skip


def text_digest(data: bytes) -> str:
    """SHA-256 of bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def json_digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text_digest(text.encode())


def hardware_of(device: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a device's identity that tells one kind of hardware from another (driver left out).

    ``device``: the fields of DeviceInfo."""
    return {field: device.get(field) for field in HARDWARE_FIELDS}


@dataclass(frozen=True, slots=True)
class CacheKey:
    """All that the winner of a kernel depends on; ``includes`` maps each included file, relative to the kernel
    file's folder, to the digest of its bytes (a sidecar contract among them)."""

    source: str  # digest of the kernel file's bytes
    includes: tuple[tuple[str, str], ...]
    entry: str
    contract: str  # digest of the validated contract
    flags: tuple[str, ...]
    compiler: str
    hardware: str  # json_digest(hardware_of(device))
    driver: str
    policy: int
    schema: int = SCHEMA_VERSION

    def digest(self) -> str:
        """The key as one string: k<schema>-<sha256>."""
        return f"k{self.schema}-{json_digest(asdict(self))}"

    def without_driver(self) -> str:
        """Digest of everything but compiler and driver: the second step of the lookup ladder."""
        return json_digest({k: v for k, v in asdict(self).items() if k not in ("driver", "compiler")})

    def context(self) -> str:
        """What a failure depends on: all but the driver and the timing policy."""
        return json_digest({k: v for k, v in asdict(self).items() if k not in ("driver", "policy")})


def includes_unchanged(folder: Path, includes: Mapping[str, str]) -> bool:
    """Whether every included file still has the recorded bytes."""
    for name, digest in includes.items():
        try:
            if text_digest((folder / name).read_bytes()) != digest:
                return False
        except OSError:
            return False
    return True
