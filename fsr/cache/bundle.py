"""Winners as one signed file.

JSON in UTF-8: ``format``, ``signer`` (public key, hex), ``signature`` (hex) and ``payload``, the text that is signed.
That is JSON itself: ``serial``, a number that grows with every bundle of a signer, and ``winners``, bodies of entries.
What is in the payload is looked at only when its signature holds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.entry import Entry, read_body
from fsr.cache.signing import Keys
from fsr.errors import TrustError

FORMAT = "fsr-bundle 1"
MOST_BYTES = 256 << 20  # thousands of winners; what is larger is no bundle of ours


@dataclass(frozen=True, slots=True)
class Bundle:
    """signer: public key in hex. name: under which it is trusted here. serial: of the bundle, among its signer's."""

    signer: str
    name: str
    serial: int
    entries: tuple[Entry, ...]


def packed(entries: Iterable[Entry], keys: Keys, serial: int | None = None) -> bytes:
    """A bundle of these winners, signed with the user's own key. Predicted ones are left out."""
    bodies = [entry.to_body() for entry in entries if entry.basis == "measured"]
    payload = json.dumps({"serial": time.time_ns() if serial is None else serial, "winners": bodies})
    told = {"format": FORMAT, "signer": keys.own(), "signature": keys.sign(payload.encode()), "payload": payload}
    return json.dumps(told).encode()


def unpacked(data: bytes, keys: Keys) -> Bundle:
    """The bundle of these bytes. Raises TrustError unless a trusted key has signed it all and every winner in it is
    whole and measured."""
    if len(data) > MOST_BYTES:
        raise TrustError(f"{len(data)} bytes are no bundle", expected=f"at most {MOST_BYTES}")
    try:
        told = json.loads(data)
        texts = [told[name] for name in ("format", "signer", "signature", "payload")]
    except (ValueError, KeyError, TypeError, RecursionError):
        texts = []
    if not texts or not all(isinstance(text, str) for text in texts) or texts[0] != FORMAT:
        raise TrustError("this is no bundle of winners", expected=f"a file of `fsr cache export`, format {FORMAT!r}")
    _, signer, signature, payload = texts
    name = keys.require(signer, payload.encode("utf-8", "surrogatepass"), signature)
    try:
        inner = json.loads(payload)
        serial, bodies = int(inner["serial"]), list(inner["winners"])
        entries = tuple(_entry(body) for body in bodies)
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise TrustError(f"a bundle of {name} that this fsr cannot read: {fault}", fix="update fsr") from None
    return Bundle(signer, name, serial, entries)


def _entry(body: str) -> Entry:
    entry = read_body(body, text_digest(body.encode()))
    if entry is None or entry.basis != "measured":
        raise ValueError("a winner in it is not whole, or was not measured")
    if entry.key.hardware != json_digest(hardware_of(entry.device)):
        raise ValueError("a winner in it names other hardware than it was measured on")
    if any(not isinstance(text, str) or "/" in name or name.startswith(".") for name, text in entry.files.items()):
        raise ValueError("a winner in it names a file that is none of a winner's")
    return entry
