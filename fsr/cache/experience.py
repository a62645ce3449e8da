"""What runs learned about moves, kept for later runs: one row a run, as the search wrote it, bounded in number.

What a row means is the search's affair; a row that was damaged is passed over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from fsr.cache.digest import text_digest
from fsr.cache.store import Store

MOST_OF_A_KERNEL = 3  # runs of one kernel on one device that are kept, the newest
MOST_RUNS = 1000  # of all: with what a run may hold some 20 MB at the very most


def keep(store: Store, run: str, told: Mapping[str, Any]) -> None:
    """Keep what a run learned, in place of what it had learned before it was resumed; the oldest of too many go.

    ``told``: JSON with kernel, basis, hardware and a list of moves. Raises StorageError."""
    body = json.dumps(dict(told), sort_keys=True, separators=(",", ":"))
    kernel, basis, hardware = (str(told[name]) for name in ("kernel", "basis", "hardware"))
    with store.transaction():
        store.connection.execute(
            "INSERT OR REPLACE INTO experience VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (run, kernel, basis, hardware, len(told["moves"]), body, text_digest(body.encode()), time.time()),
        )
        store.connection.execute(
            "DELETE FROM experience WHERE run IN (SELECT run FROM experience WHERE kernel = ? AND basis = ?"
            " AND hardware = ? ORDER BY created DESC, run LIMIT -1 OFFSET ?)",
            (kernel, basis, hardware, MOST_OF_A_KERNEL),
        )
        store.connection.execute(
            "DELETE FROM experience WHERE run IN"
            " (SELECT run FROM experience ORDER BY basis = 'measured' DESC, created DESC, run LIMIT -1 OFFSET ?)",
            (MOST_RUNS,),
        )


def kept(store: Store) -> list[dict[str, Any]]:
    """All that is kept and whole, in the order of the runs' names. Raises StorageError."""
    with store.told():
        rows = store.connection.execute("SELECT body, body_digest FROM experience ORDER BY run").fetchall()
    return [json.loads(body) for body, digest in rows if text_digest(body.encode()) == digest]


def counts(store: Store) -> list[dict[str, Any]]:
    """By basis and hardware: kernels, runs and moves of which something is kept, and when the last came in (Unix
    time). Raises StorageError."""
    names = ("basis", "hardware", "kernels", "runs", "moves", "newest")
    with store.told():
        rows = store.connection.execute(
            "SELECT basis, hardware, count(DISTINCT kernel), count(*), sum(moves), max(created) FROM experience"
            " GROUP BY basis, hardware ORDER BY basis, hardware"
        ).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def forget(store: Store, older_than_s: float = 0.0) -> int:
    """Delete what is older than that many seconds; of how many runs. Raises StorageError."""
    limit = time.time() - older_than_s
    with store.transaction():
        return store.connection.execute("DELETE FROM experience WHERE created <= ?", (limit,)).rowcount
