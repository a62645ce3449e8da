"""A suite of two workloads, and sides that answer without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fsr.bench.kernels import KernelsAsked
from fsr.bench.sides import SideFailureError
from fsr.errors import MissingToolError

HEAD = """// /// fsr
// [sizes]
// n = {{min = 1, max = 4096, timed = 2048}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "out", shape = ["n"]}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void {name}(const float *x, float *y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = {value};
}}
"""


@pytest.fixture
def suite_folder(tmp_path: Path) -> Path:
    """``maps/twice`` with a reference and a library, ``maps/thrice`` with a reference."""
    root = tmp_path / "suite"
    (root / "maps").mkdir(parents=True)
    (root / "maps" / "twice.cu").write_text(HEAD.format(name="twice", value="2.0f * x[i]"))
    (root / "maps" / "thrice.cu").write_text(HEAD.format(name="thrice", value="x[i] + x[i] + x[i]"))
    (root / "maps" / "references.py").write_text(
        "def twice(x):\n    return 2 * x\n\n\nlibrary_twice = twice\n\n\ndef thrice(x):\n    return 3 * x\n"
    )
    (root / "suite.toml").write_text('quick = ["twice"]\n[flops]\ntwice = "n"\nthrice = "2 * n"\n')
    return root


class FakeSide:
    """A side whose contenders take the times that a test says; ``faults``: what asking a method of it raises."""

    def __init__(self, times: Mapping[str, float], faults: Mapping[str, Exception], asked: Any) -> None:
        self.times, self.faults, self.asked = dict(times), dict(faults), asked
        self.prepared: list[str] = []
        self.closed = False

    def ask(self, method: str, *arguments: Any, limit_s: float) -> Any:
        for name in (method, " ".join([method, *map(str, arguments)])):
            if name in self.faults:
                raise self.faults[name]
        return getattr(self, method)(*arguments)

    def facts(self) -> dict[str, Any]:
        names = [n for n in self.times if n != "naive"]
        return {
            "device": {"name": "Fake GPU", "arch": "sm_90"}, "sizes": {"n": 2048}, "scalars": {},
            "roles": {"x": "IN", "y": "OUT"}, "dtypes": {"x": "float32", "y": "float32"}, "bytes": 16384.0,
            "copy_bytes_per_s": 4e12, "flops_per_s": 6e13, "l2_bytes": 50_000_000, "terms": 1,
            "apart": {name: {"y": 1e-7} for name in names}, "failures": {},
        }  # fmt: skip

    def versions(self) -> dict[str, Any]:
        return {"torch": "9.9"}

    def prepare(self, peer: str) -> dict[str, Any]:
        self.prepared.append(peer)
        return {"apart": {"y": 0.0}, "agrees": True}

    def sample(self, number: int) -> dict[str, float]:
        names = self.prepared or list(self.times)
        return {name: self.times[name] * (1.0 + 0.01 * (number % 3)) for name in names if name in self.times}

    def close(self) -> None:
        self.closed = True


class FakeSides:
    """Opens fake sides, and keeps them."""

    def __init__(self) -> None:
        self.times = {"naive": 8000.0, "winner": 2000.0, "torch": 3000.0, "library": 2500.0, "compile": 1000.0}
        self.faults: dict[str, Exception] = {}
        self.opened: list[FakeSide] = []

    def __call__(self, opener: str, asked: Any, log: Path) -> FakeSide:
        of_kernels = isinstance(asked, KernelsAsked)
        chosen = ("naive", *asked.candidates) if of_kernels else ("torch", "library", "compile")
        side = FakeSide({n: self.times[n] for n in chosen}, {} if of_kernels else self.faults, asked)
        self.opened.append(side)
        return side


@pytest.fixture
def sides() -> FakeSides:
    """Sides of both kinds: compiled with autotuning always crashes, the rest is well."""
    made = FakeSides()
    made.faults["prepare compile-max"] = SideFailureError("its process ended with -11: no luck")
    return made


def without_torch(made: FakeSides) -> None:
    """What a machine without torch says at the first question."""
    made.faults["versions"] = MissingToolError("torch cannot be imported")
