"""The rules for Make and Ninja, with a compiler that shows what it was given; benchmarks/builds.py takes nvcc's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fsr.cache.digest import text_digest
from tests.builds.conftest import Machine, machine, winner_of

__all__ = ["machine"]
INTEGRATIONS = Path(__file__).parents[2] / "integrations"


@pytest.mark.parametrize("tool", ["make", "ninja"])
def test_the_winner_is_built_and_touching_the_kernel_brings_the_original(machine: Machine, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    shutil.copytree(INTEGRATIONS, machine.folder / "src", dirs_exist_ok=True)
    kernel = machine.folder / "src" / "kernels" / "scale.cu"
    original = kernel.read_text()
    includes = (("factor.cuh", text_digest((kernel.parent / "factor.cuh").read_bytes())),)
    machine.publish(
        winner_of(machine.kernel, {"scale.fsr.cu": "// scale's winner\n"}, source=text_digest(kernel.read_bytes()),
                  includes=includes, entry="scale")
    )  # fmt: skip
    built = machine.folder / "src" / tool / "scale.o"

    def build() -> str:
        told = machine.run(tool, "-C", f"../src/{tool}", "scale.o", FSR_LAUNCH="queue")
        assert told.returncode == 0, told.stdout + told.stderr
        return built.read_text()

    assert build() == "// scale's winner\n"
    calls = len(machine.compiled)
    build()
    assert len(machine.compiled) == calls
    kernel.write_text(original + "// touched\n")
    assert build() == original + "// touched\n"
    assert len(list((machine.folder / "home" / "queue").glob("*.job"))) == 1
