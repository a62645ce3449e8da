"""A cache with a winner for a GPU that is not here, and a compiler that shows what it was given."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.entry import Entry
from fsr.cache.key import CacheKey
from fsr.cache.layers import Layers
from fsr.cache.store import Store

ROOT = Path(__file__).parents[2]
H200 = {"vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90", "sm_count": 132, "driver": "580.95.05"}
UUID = "GPU-00000000-0000-0000-0000-000000000001"
KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1024}
// ///
#include "scale.cuh"
__global__ void k(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= SCALE; }
"""
WINNER = KERNEL.replace("*= SCALE", "= SCALE * x[threadIdx.x] /* the winner */")
# what fsr sees of a machine's GPUs lies in files of the kernel driver; no option exists to pretend
STAND_IN = """#!/bin/sh
exec {python} -c 'import sys; sys.path.insert(0, "{root}")
from fsr.backends.cuda import present
present.present.__defaults__ = ("{proc}",)
import fsr.__main__
fsr.__main__.main()' "$@"
"""
NVCC = """#!/bin/sh
# the "object" is the source and the arguments; -MD -MF writes rules as nvcc does
echo "$*" >> {log}
for word do
    case $before in -o) out=$word ;; -MF) rules=$word ;; esac
    case $word in *.cu) source=$word ;; esac
    before=$word
done
grep -q 'does not compile' "$source" && exit 1
cat "$source" > "$out"
[ -z "$rules" ] || echo "$out : $source" > "$rules"
echo "a warning" >&2
"""


def winner_of(kernel: Path, files: dict[str, str] | None = None, more: tuple[str, ...] = (), **changes: Any) -> Entry:
    """A measured winner of a kernel file for the H200, which takes ``more`` flags than the contract."""
    includes = (("scale.cuh", text_digest((kernel.parent / "scale.cuh").read_bytes())),)
    key = CacheKey(
        text_digest(kernel.read_bytes()), includes, "k", "contract", (), "nvrtc 13.0",
        json_digest(hardware_of(H200)), H200["driver"], 1,
    )  # fmt: skip
    key = replace(key, **changes)
    candidate = {"source": "s", "plan": {"flags": [*key.flags, *more]}}
    return Entry(key, "measured", H200, files or {"k.fsr.cu": WINNER}, {"best": {"speedup": 2.5}}, candidate)


@dataclass
class Machine:
    """A home, a folder of kernels, a GPU, and programs: bin/fsr, bin/fsr-launch, bin/nvcc."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.folder / "home" / "cache.db"

    @property
    def layers(self) -> Layers:
        return Layers(str(self.database))

    @property
    def kernel(self) -> Path:
        return self.folder / "src" / "k.cu"

    def publish(self, *entries: Entry) -> None:
        with Store(self.database) as store:
            store.saw_device(UUID, H200["driver"], H200)
            for entry in entries or (winner_of(self.kernel),):
                store.publish(entry)

    def run(self, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
        """A command in the folder of the sources."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "FSR_HOME": str(self.folder / "home"), **self.environment, **more}
        for name in ("FSR_CACHE", "FSR_SYSTEM_CACHE"):
            if name not in more:
                environment.pop(name, None)
        return subprocess.run(
            [str(word) for word in words], cwd=self.folder / "src", env=environment, capture_output=True, text=True,
            timeout=200, check=False,
        )  # fmt: skip

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    @property
    def compiled(self) -> list[str]:
        """What the compiler was called with, one text a call."""
        log = self.folder / "nvcc.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    gpu = tmp_path / "proc" / "gpus" / "0000:01:00.0"
    gpu.mkdir(parents=True)
    (tmp_path / "proc" / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue\n")
    (gpu / "information").write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUID}\n")
    made.kernel.parent.mkdir()
    made.kernel.write_text(KERNEL)
    (made.kernel.parent / "scale.cuh").write_text("#define SCALE 3\n")
    made.program("fsr", STAND_IN.format(python=sys.executable, root=ROOT, proc=tmp_path / "proc"))
    made.program("fsr-launch", (ROOT / "fsr" / "builds" / "fsr-launch").read_text())
    made.program("nvcc", NVCC.format(log=tmp_path / "nvcc.log"))
    return made


@pytest.fixture
def seen(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine with its GPU visible to this process too."""
    monkeypatch.setattr("fsr.backends.cuda.present.present", lambda: (H200["driver"], [UUID]))
    return machine


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
