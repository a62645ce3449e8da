"""The configuration: every wrong entry is named, and what is left out has a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.errors import UsageError
from fsrd.config import read_config


def test_defaults_and_folders_of_the_command_line(tmp_path: Path) -> None:
    config = read_config(tmp_path / "absent.toml", (str(tmp_path),))
    assert config.folder[0].folder().root == tmp_path.resolve()
    assert (config.run.budget, config.polite.gpu_idle, config.folder[0].results) == ("5m", True, ".fsr")
    options = config.options("/k/a.cu", "cuda:1", Path("/k/.fsr/a.fsr.cu"))
    assert (options.device, options.budget_s, str(options.output)) == ("cuda:1", 300.0, "/k/.fsr/a.fsr.cu")
    assert options.ray is None
    assert config.options("/k/a.cu", "cuda", Path("/k/b.cu"), "head:6379#H200").ray == "head:6379#H200"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[run]\nbudgt = '5m'", "budgt"), ("[run]\nbudget = 5", "run.budget"), ("[run]\nbudget = 'soon'", "soon"),
        ("[run]\nbudget = 'soon'", "run.budget.*expected"), ("[run]\ntarget = 'sm_9000'", "one of sm_90"),
        ("[polite]\nquiet_hours = ['9-17']", "9-17"), ("[polite]\nnice = 40", "0 to 19"), ("[[folder]]", "path"),
        ("[polite]\ndaily_budget = '-1h'", "-1h"), ("[http]\nport = 99999", "65535"), ("a =", "cannot be read"),
        ("[[folder]]\npath = '/nowhere/at/all'", "no folder /nowhere/at/all"), ("[other]", "other"),
        ("[[folder]]\npath = '/'\ninclude_dirs = ['nowhere/at/all']", "'/nowhere/at/all' does not exist"),
        ("[[folder]]\npath = '/'\ndefines = ['3x']", "no name of a macro"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "daemon.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as told:
        read_config(path)
    assert str(path) in str(told.value)


def test_a_folder_of_the_command_line_that_is_none_is_no_fault_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "k.cu").touch()
    for name, says in (("nowhere", "does not exist"), ("k.cu", "is a file")):
        with pytest.raises(UsageError, match=f"{name} {says}") as told:
            read_config(tmp_path / "daemon.toml", (str(tmp_path / name),))
        assert "daemon.toml" not in str(told.value)


def test_folders_of_includes_and_macros_reach_the_runs_of_their_folder(tmp_path: Path) -> None:
    (tmp_path / "inner" / "inc").mkdir(parents=True)
    path = tmp_path / "daemon.toml"
    path.write_text(
        f"[[folder]]\npath = '{tmp_path}'\ndefines = ['A']\n"
        f"[[folder]]\npath = '{tmp_path}/inner'\ninclude_dirs = ['inc']\ndefines = ['B=1']\n"
    )
    config = read_config(path)
    outer, inner = (config.options(str(tmp_path / name), "host", Path()) for name in ("k.cu", "inner/k.cu"))
    assert (outer.include_dirs, outer.defines) == ((), ("A",))
    assert (inner.include_dirs, inner.defines) == ((str(tmp_path / "inner" / "inc"),), ("B=1",))
