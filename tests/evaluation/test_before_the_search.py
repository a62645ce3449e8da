"""What is asked before any candidate runs: can it be contained here, and do the timed sizes fit?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.errors import BaselineError, MissingToolError
from fsr.evaluation import qualify, session
from fsr.evaluation.capacity import buffer_bytes, require_room
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, DeviceInfo
from fsr.sandbox.confine import Support

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"


@pytest.fixture(scope="module")
def contract() -> Contract:
    return load_contract(EXAMPLE)


def spec_of(contract: Contract, **changes: object) -> SessionSpec:
    spec = SessionSpec(contract, Candidate(EXAMPLE.read_text(), contract.plan), "host", "sm_90", 0)
    return replace(spec, **changes)  # type: ignore[arg-type]


def test_models_code_is_refused_where_nothing_contains_it(contract, monkeypatch):
    monkeypatch.setattr(session, "support", lambda: Support(0, True))
    with pytest.raises(MissingToolError, match="no Landlock"):
        Session(spec_of(contract, untrusted=True))
    opened = Session(spec_of(contract))  # the user's own kernel still runs, and its user is told
    try:
        monkeypatch.setattr(qualify, "support", lambda: Support(0, False))
        assert "no Landlock and seccomp" in qualify._uncontained(opened)[0]
    finally:
        opened.close()


def test_models_code_runs_where_it_is_contained(contract, monkeypatch):
    monkeypatch.setattr(session, "support", lambda: Support(7, True))
    monkeypatch.setattr(qualify, "support", lambda: Support(7, True))
    opened = Session(spec_of(contract, untrusted=True))
    try:
        assert qualify._uncontained(opened) == []
    finally:
        opened.close()


def test_timed_sizes_must_fit_the_device(contract):
    biggest = max(buffer_bytes(contract, sizes) for sizes in contract.timed_sizes())
    assert biggest == 2 * 4 * max(sizes["n"] for sizes in contract.timed_sizes())
    small = DeviceInfo(vendor="nvidia", name="a small GPU", arch="sm_90", memory_bytes=biggest)
    with pytest.raises(BaselineError, match="do not fit a small GPU") as caught:
        require_room(contract, small)
    assert f"n={contract.timed_sizes()[-1]['n']}" in caught.value.where
    require_room(contract, replace(small, memory_bytes=biggest * 2))
