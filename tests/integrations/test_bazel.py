"""The rules for Bazel, with a compiler that shows what it was given; skipped where there is no Bazel."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsr.cache.digest import text_digest
from tests.builds.conftest import Machine, machine, winner_of

__all__ = ["machine"]
INTEGRATIONS = Path(__file__).parents[2] / "integrations"
WINNER = "// scale's winner\n"


class Workspace:
    """The example with its own output folder and server."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.folder = machine, machine.folder / "src" / "bazel"
        shutil.copytree(INTEGRATIONS, machine.folder / "src", dirs_exist_ok=True)
        self.kernel = machine.folder / "src" / "kernels" / "scale.cu"

    def bazel(self, *words: str) -> None:
        # the server is started by the first call, and shares its pipes: it must not outlive the test
        command = f"cd ../src/bazel && bazel --output_user_root=../../bazel --max_idle_secs=60 {' '.join(words)}"
        told = self.machine.run("sh", "-c", command, FSR_LAUNCH="queue", HOME=os.environ.get("HOME", "/"))
        assert told.returncode == 0, told.stdout + told.stderr

    def built(self) -> str:
        """The object of the kernel as it is built now."""
        self.bazel("build", "scale")
        return (self.folder / "bazel-bin" / "scale.scale.cu.o").read_text()


@pytest.fixture
def workspace(machine: Machine) -> Iterator[Workspace]:
    if shutil.which("bazel") is None:
        pytest.skip("bazel is not installed (Debian: apt-get install bazel-bootstrap)")
    made = Workspace(machine)
    yield made
    made.bazel("shutdown")


@pytest.mark.slow
def test_the_winner_is_built_when_it_arrives_and_touching_the_kernel_brings_the_original(workspace: Workspace) -> None:
    machine, kernel = workspace.machine, workspace.kernel
    original = kernel.read_text()
    queue = machine.folder / "home" / "queue"
    assert workspace.built() == original
    (job,) = queue.glob("*.job")  # a build that misses leaves a job for the daemon
    named = next(line.split(" ", 1)[1] for line in job.read_text().splitlines() if line.startswith("kernel "))
    assert Path(named).resolve() == kernel.resolve()
    includes = (("factor.cuh", text_digest((kernel.parent / "factor.cuh").read_bytes())),)
    machine.publish(
        winner_of(machine.kernel, {"scale.fsr.cu": WINNER}, source=text_digest(kernel.read_bytes()), includes=includes,
                  entry="scale")
    )  # fmt: skip
    calls = len(machine.compiled)
    assert workspace.built() == original  # the cache is no input of a build
    assert len(machine.compiled) == calls
    (workspace.folder / "winners.txt").write_text("as fsr lookup --manifest writes it\n")
    assert workspace.built() == WINNER
    kernel.write_text(original + "// touched\n")
    assert workspace.built() == original + "// touched\n"
    assert len(list(queue.glob("*.job"))) == 2
    header = kernel.parent / "factor.cuh"
    kernel.write_text(original)
    header.write_text(header.read_text() + "// touched\n")
    assert workspace.built() == original
