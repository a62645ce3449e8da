"""The cache is kept small: the longest unused winners go first."""

from __future__ import annotations

import os
from pathlib import Path

from fsr.cache.layers import used
from fsr.cache.store import Store
from fsr.cache.trimming import placed, trim
from tests.builds.conftest import Machine, machine, winner_of

__all__ = ["machine"]


def test_the_least_recently_served_goes_first_with_its_files(machine: Machine) -> None:
    entries = [winner_of(machine.kernel, entry=f"k{number}") for number in range(4)]
    keys = [entry.key.digest() for entry in entries]
    machine.publish(*entries)
    with Store(machine.database) as store:
        store.connection.execute("UPDATE winners SET created = 1000")
        for when, number in ((3000, 0), (2000, 2)):
            used(str(machine.database), keys[number])
            os.utime(f"{machine.database}.used/{keys[number]}", (when, when))
        folder = placed(store, keys[1])
        folder.mkdir(parents=True)
        (folder / "k.fsr.cu").write_text("x" * 10_000)
        size = len(entries[0].to_body())
        assert trim(store, 5 * size + 10_000) == []
        assert set(trim(store, 2 * size + 50)) == {keys[1], keys[3]}
        assert not folder.exists()
        assert trim(store, size + 50) == [keys[2]]
        assert [row["key"] for row, _ in store.entries()] == [keys[0]]
        assert trim(store, 0) == [keys[0]]
        assert [path.name for path in Path(f"{machine.database}.sources").iterdir()] == ["stamp"]
        assert list(Path(f"{machine.database}.used").iterdir()) == []
