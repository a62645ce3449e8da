"""Objects that were compiled before: found again under all they are made from, and only so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsr.backends.host import compiler
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.kept import KeptObjects
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

ONE = ("1", "1", "1")
SOURCE = "#ifndef STEP\n#define STEP 1\n#endif\n__global__ void k(int *x) { x[threadIdx.x] += STEP; }\n"


def candidate(source: str = SOURCE, flags: tuple[str, ...] = ()) -> Candidate:
    return Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),), flags=flags))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The compilers that were started, by what they were to make."""
    started: list[str] = []
    runs = compiler.run_compiler
    monkeypatch.setattr(compiler, "run_compiler", lambda command, *more: started.append("run") or runs(command, *more))
    monkeypatch.setattr(compiler, "_kept_folder", lambda _folder: tmp_path / "units")
    return started


def test_what_was_compiled_is_not_compiled_again(commands: list[str]) -> None:
    first = HostToolchain().compile(candidate())
    assert isinstance(first, Image)
    count = len(commands)
    again = HostToolchain().compile(candidate())
    assert isinstance(again, Image)
    assert (len(commands), again.data, again.resources) == (count, first.data, first.resources)


def test_another_text_flag_or_kind_of_build_is_another_object(commands: list[str]) -> None:
    made = [
        HostToolchain().compile(candidate()),
        HostToolchain().compile(candidate(SOURCE.replace("+=", "-="))),
        HostToolchain().compile(candidate(flags=("-DSTEP=2",))),
        HostToolchain().compile(candidate(flags=("--fmad=false",))),
        HostToolchain().compile(candidate(), instrumented=True),
        HostToolchain(checked=True).compile(candidate()),
        HostToolchain(watched=True).compile(candidate()),
    ]
    assert all(isinstance(image, Image) for image in made)
    assert len(commands) == 2 * len(made)


def test_a_failure_is_found_out_anew(commands: list[str]) -> None:
    broken = candidate(SOURCE.replace("STEP;", "STEPS;"))
    for _ in range(2):
        assert isinstance(HostToolchain().compile(broken), CompileFailure)
    assert len(commands) == 2


def test_a_damaged_object_is_compiled_again(commands: list[str], tmp_path: Path) -> None:
    HostToolchain().compile(candidate())
    (kept,) = (tmp_path / "units").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    count = len(commands)
    again = HostToolchain().compile(candidate())
    assert len(commands) == 2 * count
    assert isinstance(again, Image)
    assert KeptObjects(kept.parent).find(kept.name) == again.data


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    kept = KeptObjects(tmp_path, limit_bytes=2500)
    for number, name in enumerate(("a", "b", "c")):
        kept.store(name, bytes(800))
        os.utime(tmp_path / name, (number, number))
    assert kept.find("a") == bytes(800)  # used just now
    KeptObjects(tmp_path, limit_bytes=2500).store("0", bytes(800))
    assert [name for name in "abc0" if kept.find(name)] == ["a", "0"]


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptObjects(tmp_path / "file" / "units")
    kept.store("a", b"x")
    assert kept.find("a") is None
