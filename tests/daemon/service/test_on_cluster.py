"""The daemon on a real Ray cluster whose head goes in the middle of a run and comes back: the job goes on from its log.

Takes minutes on a small machine: FSR_RAY_NODES=1 has it run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsr.runs.log import read_events
from fsrd.config import Config, RunTable, WatchedFolder
from fsrd.jobs.job import State
from fsrd.running.process import CHILD
from fsrd.service.devices import slots_of
from tests.commandline import LARGE_ROW_SUM
from tests.daemon.stand_in import eventually, service_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("FSR_RAY_NODES"), reason="takes minutes: FSR_RAY_NODES=1 has it run"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of threads and sockets that it leaves
    pytest.mark.timeout(1800),
]
PATIENCE_S = 800.0


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts a head at an address that stays the same; the last one ends with the test."""
    utilities = pytest.importorskip("ray.cluster_utils")
    for name, value in {
        "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_usage_threshold": "0.99",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    begun: list[Any] = []

    def start() -> Any:
        port = int(begun[0].address.rpartition(":")[2]) if begun else 0
        given = {"num_cpus": 2, "include_dashboard": False} | ({"gcs_server_port": port} if port else {})
        begun.append(utilities.Cluster(initialize_head=True, head_node_args=given))
        return begun[-1]

    yield start
    begun[-1].shutdown()


def test_a_head_that_restarts_costs_a_run_nothing(tmp_path: Path, head: Any) -> None:
    first = head()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "row_sum.cu").write_text(LARGE_ROW_SUM)
    table = RunTable(ray=first.address, device="host", budget="25m", evaluations=6, workers=1)
    config = Config(folder=(WatchedFolder(path=str(tmp_path / "kernels")),), run=table)
    slots = slots_of(table.device, table.target, table.ray)
    assert [slot.ray for slot in slots] == [first.address]
    service = service_of(tmp_path, config, slots=slots, command=CHILD)
    service.start()
    try:
        runs = tmp_path / "home" / "runs"
        assert eventually(lambda: any(len(told(folder)) >= 3 for folder in runs.glob("*")), PATIENCE_S)
        first.head_node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        (run,) = runs.iterdir()
        before = told(run)
        head()
        assert eventually(lambda: service.store.counts()["done"] == 1, PATIENCE_S)
        (job,) = service.store.jobs([State.DONE])
        assert job.result is not None
        assert job.result["status"] == "improved"
        assert [folder.name for folder in runs.iterdir()] == [run.name] == [job.run]
        after = told(run)
        assert after[: len(before)] == before
        assert sorted(after) == sorted(set(after)) == list(range(7))
    finally:
        service.close()


def told(folder: Path) -> list[int]:
    """The candidates of which a run has outcomes."""
    return [event["id"] for event in read_events(folder) if event["kind"] == "tell"]
