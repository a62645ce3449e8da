"""What a cached result depends on.

Everything that changes the answer is in the key; samples, clocks, seeds and dates are stored beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from fsr.cache.digest import json_digest

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class CacheKey:
    """All that the winner of a kernel depends on; ``includes`` maps each included file, relative to the kernel
    file's folder, to the digest of its bytes (a sidecar contract among them). ``given``: folders of includes and macros
    that the caller gave beside the contract's."""

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
    given: tuple[str, ...] = ()

    def digest(self) -> str:
        """The key as one string: k<schema>-<sha256>."""
        return f"k{self.schema}-{self._without()}"

    def without_driver(self) -> str:
        """Digest of everything but compiler and driver: the second step of the lookup ladder."""
        return self._without("driver", "compiler")

    def context(self) -> str:
        """What a failure depends on: all but the driver and the timing policy."""
        return self._without("driver", "policy")

    def _without(self, *fields: str) -> str:
        """Digest of the other fields; ``given`` counts where there is any, as keys that are stored lack it."""
        empty = () if self.given else ("given",)
        return json_digest({k: v for k, v in asdict(self).items() if k not in (*fields, *empty)})
