"""Two runs in one process take turns on a real GPU, which no other process can have meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.lock import DeviceLock
from fsr.backends.select import backend_named
from fsr.runs.options import RefineOptions
from fsr.runs.run import Run
from fsr.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "softmax.cu"


@pytest.mark.timeout(400)
def test_two_runs_share_a_gpu_by_turns(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path / "home"), str(tmp_path / "home" / "cache.db"))
    lock = DeviceLock(backend_named("cuda").gpus()[0].uuid)
    free_during_search: list[bool] = []
    runs = []
    for number in range(2):
        kernel = tmp_path / f"softmax{number}.cu"
        kernel.write_text(EXAMPLE.read_text())
        options = RefineOptions(kernel, "cuda:0", budget_s=90.0, evaluations=20, workers=2, use_cache=False)
        runs.append(Run(options, settings=settings))

    def look(event: object) -> None:
        free_during_search.append(lock.acquire())
        lock.release()

    for run in runs:
        run.subscribe(lambda event: look(event) if event["kind"] == "tell" and event["id"] else None)
        run.start()
    results = [run.wait(300) for run in runs]
    assert all(result is not None and result.status == "improved" for result in results)
    assert sum(free_during_search) <= len(free_during_search) // 4  # but for the moment of changing hands
    assert lock.acquire()
    lock.release()
