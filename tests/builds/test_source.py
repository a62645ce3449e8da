"""`fsr.lookup_source`: what a program compiles at run time."""

from __future__ import annotations

from pathlib import Path

import pytest

import fsr
from fsr.errors import UsageError
from tests.builds.conftest import KERNEL, WINNER, Machine, winner_of


@pytest.fixture
def home(seen: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("FSR_HOME", str(seen.database.parent))
    return seen


def test_the_winner_where_it_was_proven_else_the_file(home: Machine) -> None:
    source = fsr.lookup_source(home.kernel)
    assert (source.text, source.winner, source.flags) == (KERNEL, False, ())
    assert "--explain" in source.why
    home.publish(winner_of(home.kernel, more=("--use_fast_math", "--ptxas-options=-dlcm=cg")))
    source = fsr.lookup_source(home.kernel)
    assert (source.text, source.winner, source.why) == (WINNER, True, "")
    folder = f"-I{home.kernel.parent}"
    assert source.nvcc_options == ["--use_fast_math", "-Xptxas=-dlcm=cg", folder]
    assert source.nvrtc_options == ("--use_fast_math", "--ptxas-options=-dlcm=cg", folder)
    source = fsr.lookup_source(home.kernel, flags=["--fmad=false"])
    assert (source.text, source.winner) == (KERNEL, False)
    assert "fmad=false" in source.why
    assert not fsr.lookup_source(home.kernel, device=1).winner


def test_a_broken_cache_gives_the_file_and_no_file_an_error(home: Machine) -> None:
    home.publish()
    home.database.write_bytes(b"\xff" * 8192)
    source = fsr.lookup_source(home.kernel)
    assert (source.text, source.winner) == (KERNEL, False)
    assert "cannot be used" in source.why
    with pytest.raises(UsageError, match="cannot be read"):
        fsr.lookup_source(Path("absent.cu"))
