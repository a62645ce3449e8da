"""Where settings come from: environment, then config.toml, then defaults; and what is wrong with a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.errors import UsageError
from fsr.settings import default_home, read_settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FSR_CACHE", "FSR_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FSR_HOME", str(tmp_path))
    return tmp_path


def test_with_nothing_set_all_lies_in_the_home_folder(home: Path) -> None:
    settings = read_settings()
    assert (settings.home, settings.cache, settings.workers) == (str(home), f"{home}/cache.db", None)
    assert settings.runs == f"{home}/runs"


def test_the_default_home_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_home() == str(tmp_path / "data" / "fsr")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_home() == str(tmp_path / ".local" / "share" / "fsr")


def test_the_environment_wins_over_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text('cache = "/shared/winners.db"\nworkers = 3\n')
    assert (read_settings().cache, read_settings().workers) == ("/shared/winners.db", 3)
    monkeypatch.setenv("FSR_CACHE", "/elsewhere.db")
    monkeypatch.setenv("FSR_WORKERS", "5")
    assert (read_settings().cache, read_settings().workers) == ("/elsewhere.db", 5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("workers = 0", "number of workers is 0"),
        ('workers = "many"', "number of workers is 'many'"),
        ("cache = ", "cannot be read"),
        ('cahce = "x"', "unknown setting 'cahce'"),
    ],
)
def test_a_bad_file_is_named(home: Path, text: str, told: str) -> None:
    (home / "config.toml").write_text(text)
    with pytest.raises(UsageError, match=told) as caught:
        read_settings()
    assert caught.value.where == f"{home}/config.toml"


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSR_WORKERS", "-1")
    with pytest.raises(UsageError, match="'-1'") as caught:
        read_settings()
    assert caught.value.where == "FSR_WORKERS"
