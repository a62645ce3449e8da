"""Keeping the cache small: the winners that were longest unused go first."""

from __future__ import annotations

import shutil
from pathlib import Path

from fsr.cache.store import Store


def trim(store: Store, limit_bytes: int) -> list[str]:
    """Remove least recently used winners until what is stored, bodies and written files, is at most ``limit_bytes``;
    their keys. One counts as used when it was stored and whenever a lookup served it (fsr/cache/layers.py)."""
    sizes = dict(store.connection.execute("SELECT key, length(CAST(body AS BLOB)) FROM winners").fetchall())
    created = dict(store.connection.execute("SELECT key, created FROM winners").fetchall())
    for key in sizes:
        folder = placed(store, key)
        if folder.is_dir():
            sizes[key] += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    total, removed = sum(sizes.values()), list[str]()
    for key in sorted(sizes, key=lambda key: (max(created[key], _served(store, key)), key)):
        if total <= limit_bytes:
            break
        removed.append(key)
        total -= sizes[key]
    store.remove(removed)
    for key in removed:
        shutil.rmtree(placed(store, key), ignore_errors=True)
        _mark(store, key).unlink(missing_ok=True)
    return removed


def placed(store: Store, key: str) -> Path:
    """The folder of a winner's written files."""
    return store.path.parent / "winners" / key


def _mark(store: Store, key: str) -> Path:
    return Path(f"{store.path}.used") / key


def _served(store: Store, key: str) -> float:
    try:
        return _mark(store, key).stat().st_mtime
    except OSError:
        return 0.0
