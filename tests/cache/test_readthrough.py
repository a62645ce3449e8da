"""A cache behind HTTP: read through on a miss, kept, asked again later; nothing unsigned, old or of another source."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="the extra 'share' is not installed")

from fsr.builds.lookup import main
from fsr.cache.bundle import packed
from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.hardware import Hardware
from fsr.cache.layers import Layers
from fsr.cache.readthrough import REFUSED_S
from fsr.cache.signing import Keys
from fsr.cache.store import Store
from tests.builds.conftest import H200, Machine, machine, winner_of

__all__ = ["machine"]


class Elsewhere:
    """A daemon's cache on another machine. asked: (path, token) of every request."""

    def __init__(self, keys: Keys) -> None:
        self.keys, self.asked = keys, list[tuple[str, str]]()
        self.status, self.data, self.to = 404, b"{}", ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.get("Authorization", "")))
                self.send_response(outer.status)
                if outer.to:
                    self.send_header("Location", outer.to)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(outer.data)))
                self.end_headers()
                self.wfile.write(outer.data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def has(self, data: bytes, status: int = 200) -> None:
        self.data, self.status = data, status


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(Keys(tmp_path / "sender"))
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def layers(machine: Machine, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> Layers:
    """Of a user with an H200 whose own cache holds nothing."""
    here = Hardware(json_digest(hardware_of(H200)), "sm_90", 132, H200["driver"])
    monkeypatch.setattr(Layers, "hardware", lambda self, index: here)
    with Store(machine.database):
        pass
    home = machine.folder / "home"
    Keys(home).trust("team", elsewhere.keys.own())
    return Layers(str(machine.database), "", elsewhere.address, "secret", str(home))


def later(layers: Layers) -> None:
    """An hour passes."""
    assert layers.remote is not None
    for note in Path(layers.remote._notes).iterdir():
        os.utime(note, (1, 1))


def test_a_miss_is_read_through_once_and_then_kept(machine: Machine, elsewhere: Elsewhere, layers: Layers) -> None:
    elsewhere.has(packed([winner_of(machine.kernel)], elsewhere.keys))
    for _ in range(3):
        found = layers.find(str(machine.kernel))
        assert found is not None
        assert found.hit.tier == "exact"
    source = text_digest(machine.kernel.read_bytes())
    assert elsewhere.asked == [(f"/api/winners/{source}", "Bearer secret")]
    assert [name for name, _ in layers.databases] == ["user", "remote"]
    assert Path(f"{machine.database}.remote.db.sources", source).exists()  # what fsr-launch looks for


def test_what_was_withdrawn_goes_and_an_old_answer_does_not_bring_it_back(
    machine: Machine, elsewhere: Elsewhere, layers: Layers, capsys: pytest.CaptureFixture[str]
) -> None:
    old = packed([winner_of(machine.kernel)], elsewhere.keys)
    elsewhere.has(old)
    assert layers.find(str(machine.kernel)) is not None
    elsewhere.has(b"{}", 404)
    later(layers)
    assert layers.find(str(machine.kernel)) is None
    elsewhere.has(old)
    later(layers)
    assert layers.find(str(machine.kernel)) is None
    assert "not newer" in capsys.readouterr().err
    assert len(elsewhere.asked) == 3


def test_nothing_is_kept_of_what_cannot_be_trusted(
    machine: Machine, elsewhere: Elsewhere, layers: Layers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = winner_of(machine.kernel)
    good = json.loads(packed([entry], elsewhere.keys))
    changed = json.dumps(good | {"payload": good["payload"].replace("the winner", "the worse ")}).encode()
    answers = {
        "does not trust": packed([entry], Keys(tmp_path / "stranger")),
        "was changed": changed,
        "no bundle": b"[]",
        "another source": packed([winner_of(machine.kernel, source="0" * 64)], elsewhere.keys),
    }
    for says, data in answers.items():
        elsewhere.has(data)
        assert layers.find(str(machine.kernel)) is None, says
        assert says in capsys.readouterr().err
        later(layers)
    elsewhere.has(b"", 500)
    assert layers.find(str(machine.kernel)) is None
    assert "500" in capsys.readouterr().err


def test_who_is_trusted_or_let_in_at_last_need_not_wait(
    machine: Machine, elsewhere: Elsewhere, layers: Layers, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere.has(b"", 401)
    for _ in range(2):
        assert layers.find(str(machine.kernel)) is None
    assert capsys.readouterr().err.count("FSR_REMOTE_TOKEN") == 1  # a build asks for many kernels
    assert layers.remote is not None
    (note,) = Path(layers.remote._notes).iterdir()
    assert note.stat().st_mtime - time.time() <= REFUSED_S
    elsewhere.has(packed([winner_of(machine.kernel)], elsewhere.keys))
    later(layers)
    assert layers.find(str(machine.kernel)) is not None


def test_why_a_layer_missed_is_told_for_the_gpu_that_another_knows(
    machine: Machine, elsewhere: Elsewhere, layers: Layers, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere.has(packed([winner_of(machine.kernel)], elsewhere.keys))
    assert layers.find(str(machine.kernel)) is not None
    assert main(["--explain", str(machine.kernel)], layers) == 0
    told = capsys.readouterr().out
    assert "exact: served" in told.partition("remote cache")[2]
    assert "no GPU" not in told


def test_the_token_follows_no_redirect(machine: Machine, elsewhere: Elsewhere, layers: Layers, tmp_path: Path) -> None:
    other = Elsewhere(Keys(tmp_path / "other"))
    elsewhere.to = f"{other.address}/api"
    elsewhere.has(b"", 302)
    assert layers.find(str(machine.kernel)) is None
    other.server.shutdown()
    other.server.server_close()
    assert (len(elsewhere.asked), other.asked) == (1, [])


def test_a_server_that_is_not_there_costs_one_try_and_no_hit(
    machine: Machine, elsewhere: Elsewhere, layers: Layers, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere.server.shutdown()
    elsewhere.server.server_close()
    assert layers.find(str(machine.kernel)) is None
    assert "refused" in capsys.readouterr().err
    machine.publish()
    assert layers.find(str(machine.kernel)) is not None
    assert capsys.readouterr().err == ""
