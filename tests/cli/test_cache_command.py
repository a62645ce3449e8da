"""`fsr cache`: what is stored, why it is or is not served, and keeping it clean."""

from __future__ import annotations

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.entry import Entry
from fsr.cache.experience import keep
from fsr.cache.key import CacheKey
from fsr.cache.store import Store
from fsr.errors import EXIT_DONE, EXIT_FAILED, EXIT_USAGE

H200 = {"vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90", "sm_count": 132, "driver": "580.1"}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache.db"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k(float *x) {}\n")
    return path


def publish(database: Path, kernel: Path, entry: str = "k", basis: str = "measured", speedup: float = 2.5) -> str:
    """Store a winner; its key."""
    key = CacheKey(
        text_digest(kernel.read_bytes()), (), entry, "contract", (), "nvrtc 13.0", json_digest(hardware_of(H200)),
        "580.1", 1,
    )  # fmt: skip
    evidence = {"best": {"speedup": speedup}}
    with Store(database) as store:
        store.publish(Entry(key, basis, H200, {"k.fsr.cu": "// winner\n"}, evidence, {"source": "s"}))
    return key.digest()


def damage(database: Path, key: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE winners SET body = body || ' ' WHERE key = ?", (key,))
    connection.close()


def test_an_empty_cache(cli):
    assert "no winners" in cli("cache", "list").out
    assert json.loads(cli("cache", "list", "--json").out) == {"winners": []}
    assert cli("cache", "verify").code == EXIT_DONE


def test_list_says_what_is_stored_and_on_what_basis(cli, database, kernel):
    publish(database, kernel, "first", speedup=2.5)
    publish(database, kernel, "second", basis="predicted", speedup=12.5)
    lines = {line.split()[4]: line for line in cli("cache", "list").out.splitlines()}
    assert "2.50x (measured)" in lines["first"]
    assert "12.5x (predicted)" in lines["second"]
    rows = json.loads(cli("cache", "list", "--json").out)["winners"]
    assert {(row["entry"], row["basis"], row["device"]) for row in rows} == {
        ("first", "measured", "NVIDIA H200"), ("second", "predicted", "NVIDIA H200"),
    }  # fmt: skip


def test_show_takes_the_beginning_of_one_key(cli, database, kernel):
    key = publish(database, kernel, "first")
    told = cli("cache", "show", key[:20])
    assert json.loads(told.out)["evidence"] == {"best": {"speedup": 2.5}}
    publish(database, kernel, "second")
    refused = cli("cache", "show", "k")
    assert refused.code == EXIT_USAGE
    assert "2 winners" in refused.err
    assert "fsr cache list" in refused.err
    assert cli("cache", "show", "zzz").code == EXIT_USAGE


def test_damage_is_told_not_served_and_pruned(cli, database, kernel):
    key = publish(database, kernel)
    assert cli("cache", "verify").code == EXIT_DONE
    damage(database, key)
    told = cli("cache", "verify")
    assert told.code == EXIT_FAILED
    assert key in told.out
    assert json.loads(cli("cache", "verify", "--json").out) == {"checked": 1, "damaged": [key]}
    assert "damaged" in cli("cache", "list").out
    assert json.loads(cli("cache", "show", key).out)["damaged"] is True
    assert "damaged: never served" in cli("cache", "explain", kernel).out
    assert "1 winner removed" in cli("cache", "prune", "--damaged").out
    assert cli("cache", "verify").code == EXIT_DONE


def test_prune_removes_only_what_is_named(cli, database, kernel):
    publish(database, kernel)
    refused = cli("cache", "prune")
    assert refused.code == EXIT_USAGE
    assert "--damaged" in refused.err
    assert "0 winners removed" in cli("cache", "prune", "--older-than", 1).out
    with Store(database) as store:
        store.remember_failure("context", "candidate", "wrong", {})
    told = cli("cache", "prune", "--failures").out
    assert "0 winners removed" in told
    assert "1 failures forgotten" in told
    assert "1 winner removed" in cli("cache", "prune", "--older-than", 0).out


def test_explain_says_what_fits_and_what_not(cli, database, kernel):
    assert "there is no cache yet" in cli("cache", "explain", kernel).out
    publish(database, kernel, basis="predicted")
    told = cli("cache", "explain", kernel).out
    assert "1 winner stored" in told
    assert "predicted, not measured: never served" in told
    kernel.write_text("// changed\n")
    assert "0 winners stored" in cli("cache", "explain", kernel).out
    assert cli("cache", "explain", kernel, "--device", "cuda:x").code == EXIT_USAGE
    assert cli("cache", "explain", kernel.with_name("absent.cu")).code == EXIT_USAGE


def test_a_file_damaged_in_the_middle_is_told(cli, database, kernel):
    for number in range(40):
        publish(database, kernel, f"entry{number}")
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(database.read_bytes())
    data[4096 * 2 :] = b"\xff" * (len(data) - 4096 * 2)
    database.write_bytes(data)
    told = cli("cache", "list")
    assert told.code == EXIT_FAILED
    assert "cache database cannot be used" in told.err
    assert str(database) in told.err


def test_winners_travel_signed_and_wait_in_quarantine(cli, database, kernel, tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="the extra 'share' is not installed")
    publish(database, kernel)
    bundle = tmp_path / "winners.json"
    assert "1 winner in" in cli("cache", "export", bundle).out
    key = cli("cache", "key").out.strip()
    assert cli("cache", "export", bundle, "--key", "zzz").code == EXIT_USAGE
    for name in ("FSR_CACHE",):
        monkeypatch.setenv(name, str(tmp_path / "other" / "cache.db"))
    own = tmp_path / "home" / "keys" / "private.pem"
    own.rename(tmp_path / "kept.pem")
    refused = cli("cache", "import", bundle)
    assert refused.code == EXIT_FAILED
    assert "does not trust" in refused.err
    assert "fsr cache trust" in refused.err
    assert cli("cache", "trust", "ann", key).code == EXIT_DONE
    assert "1 winner of ann in quarantine" in cli("cache", "import", bundle).out
    assert "not newer" in cli("cache", "import", bundle).err
    assert "1 winner in quarantine" in cli("cache", "list").out
    assert "1 winner checked, 0 damaged" in cli("cache", "verify").out
    bundle.write_bytes(bundle.read_bytes().replace(b"winner", b"loser!"))
    assert "content was changed" in cli("cache", "import", bundle).err
    assert cli("cache", "import", tmp_path / "absent").code == EXIT_USAGE


class Bucket(BaseHTTPRequestHandler):
    """One object behind a plain GET, with its tag."""

    data, tag, sent = b"", '"1"', 0

    def do_GET(self):
        known = self.headers.get("If-None-Match") == self.tag
        found = self.path == "/winners.json"
        self.send_response(304 if known and found else 200 if found else 404)
        self.send_header("ETag", self.tag)
        body = b"" if known or not found else self.data
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        type(self).sent += len(body)  # before the client has it, which then counts anew
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_teams_winners_come_from_a_web_server_once_and_only_as_signed(cli, database, kernel, tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="the extra 'share' is not installed")
    publish(database, kernel)
    bundle = tmp_path / "winners.json"
    cli("cache", "export", bundle)
    monkeypatch.setenv("FSR_CACHE", str(tmp_path / "other" / "cache.db"))
    whole = bundle.read_bytes()
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/winners.json"
        Bucket.data = whole.replace(b"winner", b"loser!")
        for _ in range(2):  # what was refused is not remembered as known
            assert "content was changed" in cli("cache", "import", address).err
        Bucket.data, Bucket.sent = whole, 0
        assert "1 winner of own in quarantine" in cli("cache", "import", address).out
        assert "nothing is new" in cli("cache", "import", address).out
        assert Bucket.sent == len(whole)
        Bucket.tag = '"2"'
        assert "not newer" in cli("cache", "import", address).err  # an old one that is put back: replayed
        absent = cli("cache", "import", f"{address}x")
        assert (absent.code, "404" in absent.err) == (EXIT_USAGE, True)
        server.shutdown()
    gone = cli("cache", "import", address)
    assert (gone.code, "cannot be fetched" in gone.err) == (EXIT_USAGE, True)


def test_prune_keeps_the_cache_to_a_size(cli, database, kernel):
    publish(database, kernel)
    assert "0 winners removed" in cli("cache", "prune", "--max-size", 1).out
    assert "1 winner removed" in cli("cache", "prune", "--max-size", 0).out


def test_what_runs_learned_is_shown_and_forgotten(cli, database):
    assert "no experience" in cli("cache", "experience").out
    with Store(database) as store:
        for run in ("one", "two"):
            keep(store, run, {"kernel": run, "basis": "predicted", "hardware": "sm_90", "moves": [[1], [2]]})
    assert "sm_90" in (told := cli("cache", "experience").out)
    assert "4 moves in 2 runs of 2 kernels" in told
    (row,) = json.loads(cli("cache", "experience", "--json").out)["experience"]
    assert (row["kernels"], row["moves"]) == (2, 4)
    assert "what 0 runs learned" in cli("cache", "prune", "--experience", "--older-than", "1").out
    assert "what 2 runs learned" in cli("cache", "prune", "--experience").out
    assert json.loads(cli("cache", "experience", "--json").out) == {"experience": []}
