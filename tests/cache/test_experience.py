"""Experience in the cache: one row a run, bounded, whole or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fsr.cache import experience
from fsr.cache.experience import counts, forget, keep, kept
from fsr.cache.migrations import MIGRATIONS, migrate, version_of
from fsr.cache.store import Store
from fsr.errors import StorageError


def told(kernel: str, basis: str = "predicted", moves: int = 1, hardware: str = "sm_90") -> dict[str, Any]:
    return {"kernel": kernel, "basis": basis, "hardware": hardware, "moves": [[n] for n in range(moves)]}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "cache.db") as opened:
        yield opened


def test_a_run_has_one_row_however_often_it_is_resumed(store: Store) -> None:
    keep(store, "run", told("a", moves=1))
    keep(store, "run", told("a", moves=5))
    assert kept(store) == [told("a", moves=5)]


def test_the_newest_of_a_kernel_and_of_all_stay_and_measured_ones_longest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experience, "MOST_RUNS", 6)
    keep(store, "m", told("measured", "measured"))
    for n in range(5):
        keep(store, f"same {n}", told("same", moves=n))
    assert [len(t["moves"]) for t in kept(store) if t["kernel"] == "same"] == [2, 3, 4]
    for n in range(9):
        keep(store, f"other {n}", told(f"k{n}"))
    assert [t["kernel"] for t in kept(store)] == ["measured", "k4", "k5", "k6", "k7", "k8"]


def test_what_was_damaged_is_passed_over(store: Store) -> None:
    keep(store, "one", told("a"))
    keep(store, "two", told("b"))
    store.connection.execute("UPDATE experience SET body = '{}' WHERE run = 'one'")
    assert [t["kernel"] for t in kept(store)] == ["b"]


def test_it_is_counted_and_forgotten(store: Store) -> None:
    assert counts(store) == []
    keep(store, "one", told("a", moves=2))
    keep(store, "two", told("a", moves=3))
    keep(store, "three", told("b", "measured", 4, "NVIDIA H200"))
    rows = [{k: v for k, v in row.items() if k != "newest"} for row in counts(store)]
    assert rows == [
        {"basis": "measured", "hardware": "NVIDIA H200", "kernels": 1, "runs": 1, "moves": 4},
        {"basis": "predicted", "hardware": "sm_90", "kernels": 1, "runs": 2, "moves": 5},
    ]
    assert forget(store, 3600.0) == 0
    assert forget(store) == 3
    assert kept(store) == []


def test_a_cache_of_an_earlier_schema_is_opened_with_all_it_held(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    connection = sqlite3.connect(path, isolation_level=None)
    for migration in MIGRATIONS[:2]:
        connection.executescript(migration)
    connection.execute("PRAGMA user_version=2")
    connection.execute("INSERT INTO failures VALUES ('c', 'h', 'wrong', '{}', 1.0)")
    connection.close()
    with Store(path) as store:
        assert store.failures("c") == {"h": "wrong"}
        assert version_of(store.connection) == len(MIGRATIONS)
        migrate(store.connection)  # once is enough
        keep(store, "run", told("a"))
        assert len(kept(store)) == 1


def test_faults_of_the_database_are_told(store: Store) -> None:
    store.connection.execute("DROP TABLE experience")
    for call in (lambda: keep(store, "run", told("a")), lambda: kept(store), lambda: counts(store)):
        with pytest.raises(StorageError):
            call()
