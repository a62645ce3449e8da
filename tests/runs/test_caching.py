"""Where a run begins: with the stored winner, that of an older compiler too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fsr.cache.store import Store
from fsr.records import Basis, Candidate, DeviceInfo
from fsr.runs.caching import RunCache
from fsr.runs.kernel import load_kernel

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
DEVICE = DeviceInfo("host", "this CPU", "x86-64")


def spec_with(compiler: str) -> Any:
    backend = SimpleNamespace(
        toolchain=lambda target: SimpleNamespace(version=compiler), driver_version=lambda: None, gpus=tuple
    )
    return SimpleNamespace(backend=backend, target="sm_90", predicted=True, policy=SimpleNamespace(version=1))


def test_a_winner_of_an_older_compiler_is_where_a_run_begins(tmp_path: Path) -> None:
    kernel = load_kernel(EXAMPLE, None)
    winner = Candidate(kernel.baseline.source + "\n// faster\n", kernel.baseline.plan, ("a move",))
    with Store(tmp_path / "cache.db") as store:
        old, new = (RunCache(store, kernel, spec_with(f"compiler {n}"), DEVICE) for n in (1, 2))
        assert new.start() is None
        old.publish(winner, {"k.fsr.cu": ""}, {}, Basis.PREDICTED)
        assert old.start() == new.start() == winner
        better = Candidate(winner.source + "// still\n", winner.plan)
        new.publish(better, {"k.fsr.cu": ""}, {}, Basis.PREDICTED)
        assert (old.start(), new.start()) == (winner, better)
