"""Winners as a signed file: what is changed, foreign or sent again is refused, and nothing is served unverified."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="the extra 'share' is not installed")

from fsr.cache.bundle import packed, unpacked
from fsr.cache.lookup import find
from fsr.cache.quarantine import held, let_go, take_in
from fsr.cache.signing import Keys
from fsr.cache.store import Store
from fsr.errors import TrustError, UsageError
from tests.builds.conftest import H200, Machine, machine, winner_of

__all__ = ["machine"]


@pytest.fixture
def sender(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "sender")


@pytest.fixture
def receiver(tmp_path: Path, sender: Keys) -> Keys:
    keys = Keys(tmp_path / "receiver")
    keys.trust("ann", sender.own())
    return keys


def test_a_bundle_arrives_whole_and_is_not_served(machine: Machine, sender: Keys, receiver: Keys) -> None:
    entry = winner_of(machine.kernel)
    bundle = unpacked(packed([entry, replace(entry, basis="predicted")], sender), receiver)
    assert (bundle.name, bundle.entries) == ("ann", (entry,))
    with Store(machine.database) as store:
        assert take_in(store, bundle) == 1
        assert [(key, found) for key, found in held(store)] == [(entry.key.digest(), entry)]
        assert list(held(store, "another source")) == []
        assert find(machine.kernel, machine.database, device=H200) is None
        let_go(store, entry.key.digest())
        assert list(held(store)) == []


def test_a_bundle_that_comes_again_or_late_is_refused(machine: Machine, sender: Keys, receiver: Keys) -> None:
    entry = winner_of(machine.kernel)
    old, new = (unpacked(packed([entry], sender, serial), receiver) for serial in (1, 2))
    with Store(machine.database) as store:
        take_in(store, new)
        let_go(store, entry.key.digest())
        for replayed in (new, old):
            with pytest.raises(TrustError, match="not newer"):
                take_in(store, replayed)
        assert list(held(store)) == []
        assert take_in(store, unpacked(packed([entry], sender), receiver)) == 1  # serials of their own are times


def test_any_changed_byte_is_refused(machine: Machine, sender: Keys, receiver: Keys) -> None:
    data = packed([winner_of(machine.kernel)], sender)
    told = json.loads(data)
    for place in range(0, len(data), 97):
        changed = bytearray(data)
        changed[place] ^= 1
        try:
            bundle = unpacked(bytes(changed), receiver)
        except TrustError:
            continue
        assert packed(bundle.entries, sender, bundle.serial) == data  # another spelling of the same JSON
    for name, text in (("payload", told["payload"].replace("the winner", "the worse ")), ("signature", "00" * 64),
                       ("signature", "zz"), ("format", "fsr-bundle 2"), ("payload", 3), ("signer", "")):  # fmt: skip
        with pytest.raises(TrustError):
            unpacked(json.dumps(told | {name: text}).encode(), receiver)
    for rubbish in (b"", b"{}", b"[" * 100_000, b"\xff"):
        with pytest.raises(TrustError, match="no bundle"):
            unpacked(rubbish, receiver)


def test_foreign_keys_are_refused_even_when_they_sign_well(machine: Machine, tmp_path: Path, receiver: Keys) -> None:
    stranger = Keys(tmp_path / "stranger")
    with pytest.raises(TrustError, match="does not trust"):
        unpacked(packed([winner_of(machine.kernel)], stranger), receiver)


@pytest.mark.parametrize(
    "changes",
    [
        {"device": {**H200, "sm_count": 1}}, {"files": {"../k.cu": "x"}}, {"files": {".bashrc": "x"}},
        {"files": {"k.cu": 3}}, {"basis": "dreamt"},
    ],
)  # fmt: skip
def test_even_a_trusted_signer_cannot_send_what_is_no_winner(
    machine: Machine, sender: Keys, receiver: Keys, changes: dict[str, Any]
) -> None:
    body = replace(winner_of(machine.kernel), **changes).to_body()
    payload = json.dumps({"serial": 1, "winners": [body]})
    told = {"format": "fsr-bundle 1", "signer": sender.own(), "signature": sender.sign(payload.encode())}
    with pytest.raises(TrustError, match="cannot read"):
        unpacked(json.dumps(told | {"payload": payload}).encode(), receiver)


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    assert keys.own() == Keys(tmp_path).own()
    assert stat.S_IMODE((tmp_path / "keys" / "private.pem").stat().st_mode) == 0o600
    assert keys.trusted() == {keys.own(): "own"}
    for name, key in (("", "0" * 64), ("../x", "0" * 64), ("x", "0" * 63), ("x", "Z" * 64), (".x", "0" * 64)):
        with pytest.raises(UsageError):
            keys.trust(name, key)
    (tmp_path / "keys" / "private.pem").write_text("no key")
    with pytest.raises(TrustError, match="cannot be used"):
        keys.sign(b"")
