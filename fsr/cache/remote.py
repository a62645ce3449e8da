"""Bundles of winners from a web server or a bucket: plain GET, asked again only when they changed.

Nothing is trusted for where it comes from: what is fetched is a bundle, and its signature decides (fsr.cache.bundle).
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from fsr.cache.bundle import MOST_BYTES
from fsr.errors import UsageError

TIMEOUT_S = 60.0
SCHEMES = ("http://", "https://")


def is_address(text: str) -> bool:
    """Whether it names something on the web, and not a file here."""
    return text.lower().startswith(SCHEMES)


@dataclass(frozen=True, slots=True)
class Fetched:
    """data: the bytes; None when they are those that were fetched before. tag: the server's name for them, or ''."""

    data: bytes | None
    tag: str


class Remote:
    """A bundle at an address. ``notes``: the folder that remembers which version was taken in last."""

    def __init__(self, address: str, notes: Path) -> None:
        self.address = address
        self._note = notes / hashlib.sha256(address.encode()).hexdigest()

    def fetch(self) -> Fetched:
        """The bundle, if it is another than was noted (RFC 9110, ETag). Raises UsageError when it cannot be had."""
        request = urllib.request.Request(self.address, headers={"User-Agent": "fsr", "Accept": "application/json"})
        if self._note.is_file():
            request.add_header("If-None-Match", self._note.read_text("latin-1"))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                data = answer.read(MOST_BYTES + 1)
                return Fetched(data, answer.headers.get("ETag") or "")
        except urllib.error.HTTPError as fault:
            fault.close()
            if fault.code == HTTPStatus.NOT_MODIFIED:
                return Fetched(None, "")
            why = f"{fault.code} {fault.reason}"
        except (OSError, ValueError) as fault:
            why = str(getattr(fault, "reason", fault))
        raise UsageError(
            f"the bundle cannot be fetched: {why}", expected="a file of `fsr cache export` behind a plain GET",
            where=self.address,
        )  # fmt: skip

    def taken(self, fetched: Fetched) -> None:
        """What was fetched is taken in: it need not be fetched again. A note that cannot be kept costs a download."""
        try:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            if fetched.tag:
                self._note.write_text(fetched.tag, "latin-1")
            else:
                self._note.unlink(missing_ok=True)
        except (OSError, ValueError):
            return
