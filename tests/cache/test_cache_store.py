"""The cache: publishing, the lookup ladder, damage, remembered failures, and who may answer."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsr.backends.cuda.present import present, visible
from fsr.cache.connection import file_system, open_for_writing
from fsr.cache.digest import hardware_of, includes_unchanged, json_digest, text_digest
from fsr.cache.entry import Entry, read_body
from fsr.cache.explain import explain
from fsr.cache.hardware import known_device
from fsr.cache.key import CacheKey
from fsr.cache.lookup import find, write_files
from fsr.cache.migrations import MIGRATIONS
from fsr.cache.store import Store
from fsr.errors import StorageError, UsageError

H200 = {"vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90", "sm_count": 132, "driver": "580.1"}
KERNEL = "__global__ void k(float *x) {}\n"


def entry(kernel: Path, device: dict[str, Any] | None = None, basis: str = "measured", **changes: Any) -> Entry:
    device = device or H200
    key = CacheKey(
        text_digest(kernel.read_bytes()), (), "k", "c", (), "nvrtc 13.0", json_digest(hardware_of(device)),
        str(device["driver"]), 1,
    )  # fmt: skip
    files = {"k.fsr.cu": "// winner\n"}
    return Entry(replace(key, **changes), basis, device, files, {"best": {"speedup": 2.5}}, {"source": "s"})


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache.db"


def test_a_published_winner_is_found_exactly(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
        assert store.winner(entry(kernel).key) == entry(kernel)
    hit = find(kernel, database, device=H200)
    assert hit is not None
    assert (hit.tier, hit.files) == ("exact", {"k.fsr.cu": "// winner\n"})


def test_another_driver_or_compiler_is_where_a_run_begins_and_no_answer(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        old, key = entry(kernel), entry(kernel, driver="590.1", compiler="nvrtc 13.1").key
        assert store.akin(key) is None
        store.publish(entry(kernel, basis="predicted", driver="3"))
        store.publish(old)
        store.publish(entry(kernel, basis="predicted", driver="4"))
        assert store.winner(key) is None
        assert store.akin(key) == old
        for change in ({"source": "0"}, {"contract": "d"}, {"hardware": "0"}, {"flags": ("-O1",)}):
            assert store.akin(replace(key, **change)) is None  # type: ignore[arg-type]
        with store.transaction():
            store.connection.execute("UPDATE winners SET body = 'x' WHERE basis = 'measured'")
        found = store.akin(key)
        assert found is not None
        assert found.basis == "predicted"


def test_any_change_of_the_key_is_a_miss(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
        key = entry(kernel).key
        for change in (
            {"source": "0"}, {"includes": (("a.cuh", "0"),)}, {"entry": "j"}, {"contract": "d"}, {"flags": ("-O1",)},
            {"compiler": "nvrtc 12"}, {"hardware": "0"}, {"driver": "1"}, {"policy": 2}, {"schema": 2},
            {"given": ("-DN=3",)},
        ):  # fmt: skip
            assert store.winner(replace(key, **change)) is None
    kernel.write_text(KERNEL + "\n")
    assert find(kernel, database, device=H200) is None


def test_the_ladder_answers_only_as_far_as_it_is_asked_to(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
    newer = {**H200, "driver": "590.0"}
    assert find(kernel, database, device=newer) is None
    hit = find(kernel, database, device=newer, tier="driver")
    assert hit is not None
    assert hit.tier == "driver"
    other = {**H200, "name": "NVIDIA H100", "sm_count": 114}
    assert find(kernel, database, device=other, tier="driver") is None
    hit = find(kernel, database, device=other, tier="arch")
    assert hit is not None
    assert hit.tier == "arch"
    assert find(kernel, database, device={**H200, "arch": "sm_80"}, tier="arch") is None


def test_the_closest_multiprocessor_count_answers_for_an_architecture(kernel: Path, database: Path) -> None:
    near, far = ({**H200, "name": name, "sm_count": count} for name, count in (("near", 120), ("far", 60)))
    with Store(database) as store:
        store.publish(entry(kernel, near))
        store.publish(entry(kernel, far))
    hit = find(kernel, database, device={**H200, "sm_count": 114}, tier="arch")
    assert hit is not None
    assert json.loads(hit.body)["device"]["name"] == "near"


def test_a_predicted_winner_is_never_served_and_never_replaces_a_measured_one(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel, basis="predicted"))
        assert find(kernel, database, device=H200, tier="arch") is None
        store.publish(entry(kernel))
        store.publish(entry(kernel, basis="predicted"))
        held = store.winner(entry(kernel).key)
    assert held is not None
    assert held.basis == "measured"


def test_a_damaged_entry_is_a_miss_and_is_shown_as_damaged(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
    connection = sqlite3.connect(database)
    connection.execute("UPDATE winners SET body = replace(body, 'winner', 'loser')")
    connection.commit()
    connection.close()
    assert find(kernel, database, device=H200) is None
    with Store(database) as store:
        assert store.winner(entry(kernel).key) is None
        ((row, found),) = store.entries()
        assert found is None
        assert store.remove([row["key"]]) == 1
        assert list(store.entries()) == []


def test_a_changed_include_is_a_miss(kernel: Path, database: Path, tmp_path: Path) -> None:
    header = tmp_path / "a.cuh"
    header.write_text("#define N 1\n")
    includes = (("a.cuh", text_digest(header.read_bytes())),)
    with Store(database) as store:
        store.publish(entry(kernel, includes=includes))
    assert find(kernel, database, device=H200) is not None
    header.write_text("#define N 2\n")
    assert find(kernel, database, device=H200) is None
    assert not includes_unchanged(str(tmp_path), [("gone.cuh", "0")])


def test_the_entry_name_chooses(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
    assert find(kernel, database, device=H200, entry="k") is not None
    assert find(kernel, database, device=H200, entry="j") is None


def test_a_source_has_a_hint_as_long_as_it_has_a_measured_winner(kernel: Path, database: Path) -> None:
    hint = Path(f"{database}.sources") / text_digest(kernel.read_bytes())
    with Store(database) as store:
        store.publish(entry(kernel, basis="predicted", contract="p"))
        assert not hint.exists()
        store.publish(entry(kernel))
        store.publish(entry(kernel, entry="j"))
        assert hint.exists()
        store.remove([entry(kernel).key.digest()])
        assert hint.exists()
        store.remove([entry(kernel, entry="j").key.digest()])
        assert not hint.exists()
        store.publish(entry(kernel))
    shutil.rmtree(hint.parent)  # a database that an older fsr made
    with Store(database):
        assert hint.exists()


def test_failures_are_remembered_per_context(kernel: Path, database: Path) -> None:
    with Store(database) as store:
        store.remember_failure("ctx", "f1a", "wrong", {"case": "smoke"})
        store.remember_failure("ctx", "f1a", "compile_failed", {})
        store.remember_failure("ctx", "f1b", "invalid", {})
        assert store.failures("ctx") == {"f1a": "wrong", "f1b": "invalid"}
        assert store.failures("other") == {}
        assert store.forget_failures(3600) == 0
        assert store.forget_failures(-1) == 2


def test_no_database_is_a_miss_and_no_kernel_an_error(kernel: Path, database: Path, tmp_path: Path) -> None:
    assert find(kernel, database, device=H200) is None
    assert not database.exists()
    with pytest.raises(UsageError, match="cannot be read"):
        find(tmp_path / "absent.cu", database, device=H200)


def test_a_file_that_is_no_database_is_told(kernel: Path, tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(b"not a database, certainly not one of sixteen bytes and more")
    with pytest.raises(StorageError, match="cannot be used"):
        Store(path)
    with pytest.raises(StorageError, match="cannot be used"):
        find(kernel, path, device=H200)


def test_a_newer_schema_is_refused(database: Path) -> None:
    connection = open_for_writing(database)
    connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StorageError, match="update fsr"):
        Store(database)


def test_a_locked_database_is_told(database: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(database) as store:
        monkeypatch.setattr("fsr.cache.connection.BUSY_S", 0.1)
        store._connection.execute("BEGIN IMMEDIATE")
        with Store.__new__(Store) as other:
            other.path = database
            other._connection = open_for_writing(database)
            with pytest.raises(StorageError, match="locked"), other.transaction():
                pass
        store._connection.execute("ROLLBACK")


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = f"/dev/x / ext4 rw 0 0\nserver:/a {tmp_path} nfs4 rw 0 0\n"
    assert file_system(tmp_path / "cache.db", mounts) == "nfs4"
    assert file_system(Path("/somewhere/else"), mounts) == "ext4"
    monkeypatch.setattr("fsr.cache.connection.file_system", lambda path: "nfs4")
    with pytest.raises(StorageError, match="network file system"):
        open_for_writing(tmp_path / "cache.db")


def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be"):
        open_for_writing(tmp_path / "file" / "cache.db")


def _publish_many(database: str, kernel: str, start: int) -> None:
    with Store(Path(database)) as store:
        for number in range(start, start + 20):
            store.publish(entry(Path(kernel), contract=str(number % 25)))
            store.remember_failure("ctx", f"f{number % 25}", "wrong", {})


def test_racing_writers_leave_one_row_a_key(kernel: Path, database: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_publish_many, args=(str(database), str(kernel), 10 * i)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    with Store(database) as store:
        found = list(store.entries())
        assert len(found) == 25
        assert all(e is not None for _, e in found)
        assert len(store.failures("ctx")) == 25


def test_the_driver_files_tell_gpu_and_driver(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12\n"
    (tmp_path / "version").write_text(version)
    (tmp_path / "gpus" / "0000:01:00.0" / "information").write_text("Model: \t NVIDIA H200\nGPU UUID: \t GPU-12ab\n")
    assert present(str(tmp_path)) == ("580.159.04", ["GPU-12ab"])
    assert present(str(tmp_path / "absent")) is None
    monkeypatch.setattr("fsr.backends.cuda.present.present", lambda: present(str(tmp_path)))
    with Store(database) as store:
        store.saw_device("GPU-12ab", "570.0", H200)
        found = known_device(store._connection, 0)
        assert found is not None
        assert (found.arch, found.sm_count, found.driver) == ("sm_90", 132, "580.159.04")
        assert known_device(store._connection, 1) is None


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (None, ["GPU-12ab", "GPU-12cd", "GPU-34ef"]),
        ("2,0", ["GPU-34ef", "GPU-12ab"]),
        ("GPU-34ef", ["GPU-34ef"]),
        (" GPU-3 , 1", ["GPU-34ef", "GPU-12cd"]),
        ("1,7,0", ["GPU-12cd"]),  # CUDA stops at the first that it does not know, too
        ("GPU-12", []),  # two begin so
        ("-1", []),
        ("", []),
    ],
)
def test_lookup_numbers_gpus_as_cuda_does(chosen: str | None, left: list[str]) -> None:
    assert visible(["GPU-12ab", "GPU-12cd", "GPU-34ef"], chosen) == left


def test_files_that_cannot_be_written_are_told(kernel: Path, database: Path, tmp_path: Path) -> None:
    with Store(database) as store:
        store.publish(entry(kernel))
    hit = find(kernel, database, device=H200)
    assert hit is not None
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_files(hit, str(tmp_path / "file" / "folder"))


def test_explain_says_what_differs(kernel: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no cache yet" in explain(kernel, database)[0]
    with Store(database) as store:
        store.publish(entry(kernel))
        store.publish(entry(kernel, {**H200, "driver": "1.0"}))
        store.publish(entry(kernel, {**H200, "sm_count": 114}))
        store.publish(entry(kernel, {**H200, "arch": "sm_80"}))
        store.publish(entry(kernel, basis="predicted", contract="p"))
        store.saw_device("GPU-12ab", "580.1", H200)
    assert any("no GPU to compare" in line for line in explain(kernel, database))
    monkeypatch.setattr("fsr.backends.cuda.present.present", lambda: ("580.1", ["GPU-12ab"]))
    text = "\n".join(explain(kernel, database))
    for words in ("exact: served", "driver 1.0", "--tier arch", "for sm_80", "predicted, not measured", "5 winners"):
        assert words in text


def test_a_body_of_another_form_is_no_entry() -> None:
    body = '{"key": {}}'
    assert read_body(body, text_digest(body.encode())) is None
    assert read_body("[", text_digest(b"[")) is None
