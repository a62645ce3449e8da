"""The compiler launcher, as processes: what is compiled, and that everything else goes through untouched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.builds.queue import read, waiting
from tests.builds.conftest import KERNEL, WINNER, Machine, digest, winner_of

COMPILE = ("fsr-launch", "nvcc", "-arch=sm_90", "-MD", "-MF", "k.d", "-c", "k.cu", "-o", "k.o")


def test_a_hit_compiles_the_winner_and_names_the_original(machine: Machine) -> None:
    machine.publish()
    told = machine.run(*COMPILE, FSR_LAUNCH="verbose")
    assert told.returncode == 0
    src = machine.kernel.parent
    assert (src / "k.o").read_text() == WINNER
    assert (src / "k.d").read_text() == "k.o : k.cu\n"
    assert "compiled the winner" in told.stderr
    assert "a warning" in told.stderr
    (words,) = machine.compiled
    assert "-iquote,." in words  # the original's folder is searched for its includes


def test_a_miss_is_the_command_itself_without_fsr(machine: Machine) -> None:
    machine.program("fsr", "#!/bin/sh\nexit 99\n")
    told = machine.run(*COMPILE)
    assert told.returncode == 0
    assert machine.compiled == [" ".join(COMPILE[2:])]
    assert (machine.kernel.parent / "k.o").read_text() == KERNEL
    machine.publish(winner_of(machine.kernel, source="0" * 64))
    assert machine.run(*COMPILE).returncode == 0


def test_exit_code_output_and_odd_arguments_of_the_compiler_come_through(machine: Machine) -> None:
    machine.program("nvcc", '#!/bin/sh\nprintf "%s|" "$@"\necho told >&2\nexit 7\n')
    words = ["a b", "", "*", "$HOME", "'", '"', "\\", '-DX="y z"', "new\nline"]
    told = machine.run("fsr-launch", "nvcc", *words)
    assert told.returncode == 7
    assert told.stdout == "".join(f"{word}|" for word in words)
    assert told.stderr == "told\n"
    assert machine.run("fsr-launch").returncode == 2
    assert machine.run("fsr-launch", "no-such-compiler").returncode == 127


def test_off_leaves_fsr_out(machine: Machine) -> None:
    machine.publish()
    assert machine.run(*COMPILE, FSR_LAUNCH="loud").stderr.count("expected off, verbose or queue") == 1
    assert "FSR_LAUNCH" not in machine.run(*COMPILE, FSR_LAUNCH="off").stderr
    assert (machine.kernel.parent / "k.o").read_text() == KERNEL


def test_touching_the_kernel_falls_back_and_queues_once(machine: Machine) -> None:
    machine.publish()
    machine.kernel.write_text(KERNEL + "// touched\n")
    for _ in range(2):
        told = machine.run(*COMPILE, FSR_LAUNCH="verbose,queue")
        assert "no winner is stored" in told.stderr
    assert (machine.kernel.parent / "k.o").read_text() == KERNEL + "// touched\n"
    (place,) = waiting(machine.folder / "home" / "queue")
    job = read(place)
    assert job is not None
    assert (job.kernel, job.source, job.current) == (machine.kernel, digest(machine.kernel), True)


def test_a_changed_include_is_a_miss(machine: Machine) -> None:
    machine.publish()
    (machine.kernel.parent / "scale.cuh").write_text("#define SCALE 4\n")
    told = machine.run(*COMPILE, FSR_LAUNCH="verbose")
    assert "no winner for this GPU and these includes" in told.stderr
    assert (machine.kernel.parent / "k.o").read_text() == KERNEL
    queue = machine.folder / "home" / "queue"
    assert list(waiting(queue)) == []
    assert machine.run(*COMPILE, FSR_LAUNCH="queue").returncode == 0
    assert [job and job.kernel for job in map(read, waiting(queue))] == [machine.kernel]


def test_a_job_has_the_folders_and_macros_that_its_kernel_sees(machine: Machine) -> None:
    (machine.folder / "more").mkdir()
    (machine.folder / "more" / "width.cuh").write_text("#define WIDTH (SCALE * BASE)\n")
    machine.kernel.write_text('#include "width.cuh"\n' + KERNEL + "// touched\n")
    more = f"-I{machine.folder / 'more'}"
    command = [*COMPILE, "-I/usr", more, "-DBASE=1", "-DBASE=3", "-DNDEBUG", "-DWIDTH='1'"]
    assert machine.run(*command, FSR_LAUNCH="queue").returncode == 0
    (place,) = waiting(machine.folder / "home" / "queue")
    job = read(place)
    assert job is not None
    assert job.given == (more, "-DBASE=3")


def test_a_winner_that_does_not_compile_is_not_used(machine: Machine) -> None:
    machine.publish(winner_of(machine.kernel, {"k.fsr.cu": "does not compile"}))
    told = machine.run(*COMPILE, FSR_LAUNCH="verbose")
    assert told.returncode == 0
    assert "does not compile here" in told.stderr
    assert (machine.kernel.parent / "k.o").read_text() == KERNEL


def test_a_winner_with_another_launch_or_an_inferred_contract_stays_out(machine: Machine) -> None:
    machine.publish(winner_of(machine.kernel, {"k.fsr.cu": WINNER, "k.fsr.cuh": "launcher"}))
    assert "its launch differs" in machine.run(*COMPILE, FSR_LAUNCH="verbose").stderr
    machine.kernel.write_text('#include "scale.cuh"\n__global__ void k(float *x, int n) {}\n')
    machine.publish(winner_of(machine.kernel))
    assert "contract was inferred" in machine.run(*COMPILE, FSR_LAUNCH="verbose").stderr
    assert "winner" not in (machine.kernel.parent / "k.o").read_text()


@pytest.mark.parametrize("setting", ['cache = "{0}"', "cache = '{0}'", 'workers = 1\ncache="{0}"'])
def test_the_configuration_names_the_cache(machine: Machine, setting: str) -> None:
    machine.publish()
    home = machine.folder / "home"
    moved = machine.folder / "elsewhere"
    moved.mkdir()
    for name in ("cache.db", "cache.db.sources"):
        (home / name).rename(moved / name)
    (home / "config.toml").write_text(setting.format(moved / "cache.db") + "\n")
    assert machine.run(*COMPILE).returncode == 0
    assert (machine.kernel.parent / "k.o").read_text() == WINNER


def test_a_damaged_database_or_configuration_never_stops_a_build(machine: Machine) -> None:
    machine.publish()
    machine.database.write_bytes(b"\xff" * 8192)
    told = machine.run(*COMPILE, FSR_LAUNCH="verbose")
    assert (told.returncode, (machine.kernel.parent / "k.o").read_text()) == (0, KERNEL)
    assert "the cache cannot be used" in told.stderr
    (machine.folder / "home" / "config.toml").write_text("cache = 'x")
    assert machine.run(*COMPILE).returncode == 0


def test_the_system_cache_answers_after_the_users(machine: Machine) -> None:
    machine.publish()
    system = machine.folder / "system.db"
    machine.database.rename(system)
    Path(f"{machine.database}.sources").rename(f"{system}.sources")
    assert machine.run(*COMPILE, FSR_SYSTEM_CACHE=str(system)).returncode == 0
    assert (machine.kernel.parent / "k.o").read_text() == WINNER
    machine.publish(replace(winner_of(machine.kernel), files={"k.fsr.cu": "// the user's"}))
    assert machine.run(*COMPILE, FSR_SYSTEM_CACHE=str(system)).returncode == 0
    assert (machine.kernel.parent / "k.o").read_text() == "// the user's"
