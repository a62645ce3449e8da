"""Winners from elsewhere: kept apart, never served, until they were verified here."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fsr.cache.bundle import Bundle
from fsr.cache.digest import text_digest
from fsr.cache.entry import Entry, read_body
from fsr.cache.store import Store
from fsr.errors import TrustError


def take_in(store: Store, bundle: Bundle) -> int:
    """Put a bundle's winners into quarantine; how many. Raises TrustError for a bundle that is not newer than the last
    of its signer: one that comes again could bring back what was withdrawn since."""
    with store.transaction():
        _require_newer(store, bundle)
        for entry in bundle.entries:
            body = entry.to_body()
            store.connection.execute(
                "INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?, ?, ?)",
                (entry.key.digest(), entry.key.source, body, text_digest(body.encode()), bundle.signer, time.time()),
            )
    return len(bundle.entries)


def note_serial(store: Store, bundle: Bundle) -> None:
    """Remember that this bundle came. Raises TrustError when it is not newer than the last of its signer."""
    with store.transaction():
        _require_newer(store, bundle)


def _require_newer(store: Store, bundle: Bundle) -> None:
    row = store.connection.execute("SELECT serial FROM signers WHERE signer = ?", (bundle.signer,)).fetchone()
    if row is not None and bundle.serial <= row[0]:
        raise TrustError(
            f"a bundle of {bundle.name} that is not newer than the last one taken in",
            expected=f"a serial above {row[0]}, it has {bundle.serial}", fix="export it again",
        )  # fmt: skip
    store.connection.execute("INSERT OR REPLACE INTO signers VALUES (?, ?)", (bundle.signer, bundle.serial))


def held(store: Store, source: str | None = None) -> Iterator[tuple[str, Entry | None]]:
    """(key, entry) of all in quarantine, or of those for one source; a damaged one is None."""
    found = store.connection.execute(
        "SELECT key, body, body_digest FROM quarantine WHERE ? IS NULL OR source = ? ORDER BY key", (source, source)
    ).fetchall()
    for key, body, digest in found:
        yield key, read_body(body, digest)


def let_go(store: Store, key: str) -> None:
    """Remove one from quarantine: it was verified and stored, or refused."""
    with store.transaction():
        store.connection.execute("DELETE FROM quarantine WHERE key = ?", (key,))
