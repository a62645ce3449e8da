"""A Ray cluster of three nodes loses one in the middle of a run: the same winner, and no outcome is lost.

Takes minutes on a small machine: FSR_RAY_NODES=1 has it run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fsr.runs.log import read_events
from fsr.runs.options import RefineOptions
from fsr.runs.result import Result
from fsr.runs.run import Run
from fsr.settings import Settings
from tests.commandline import ROW_SUM

psutil = pytest.importorskip("psutil", reason="the package psutil is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("FSR_RAY_NODES"), reason="takes minutes: FSR_RAY_NODES=1 has it run"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of threads and sockets that it leaves
    pytest.mark.timeout(1800),
]
EVALUATIONS = 6


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    utilities = pytest.importorskip("ray.cluster_utils")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.99")
    cluster = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield cluster
    finally:
        cluster.shutdown()


def refined(folder: Path, address: str, name: str, at_third: Any) -> tuple[Result, list[Mapping[str, Any]]]:
    """The result of a run on the cluster and its events; ``at_third`` is called when the third outcome is there."""
    kernel = folder / f"{name}.cu"
    kernel.write_text(ROW_SUM)
    options = RefineOptions(
        kernel, "host", evaluations=EVALUATIONS, budget_s=1500.0, workers=1, ray=address, use_cache=False
    )  # one worker of each kind: outcomes are told in the order of asking, whatever happens to whom
    run = Run(options, settings=Settings(str(folder / "home"), str(folder / "home" / "cache.db")))

    def watch(event: Mapping[str, Any]) -> None:
        if event["kind"] == "tell" and event["id"] == 3:
            threading.Thread(target=at_third).start()

    run.subscribe(watch)
    run.start()
    result = run.wait()
    assert result is not None
    return result, list(read_events(run.folder))


def works(node: Any) -> bool:
    """Whether a worker of fsr runs on a node."""
    (raylet,) = node.all_processes["raylet"]
    children = psutil.Process(raylet.process.pid).children()
    return any("Executor" in " ".join(child.cmdline()) for child in children)


def test_a_node_that_goes_in_the_middle_of_a_run_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    whole, _ = refined(tmp_path, cluster.address, "whole", lambda: None)
    gone: list[Any] = []

    def lose() -> None:
        at_work = next(filter(works, nodes))
        cluster.remove_node(at_work, allow_graceful=False)
        gone.append(at_work)

    lost, events = refined(tmp_path, cluster.address, "lost", lose)
    assert gone
    asked = [event["id"] for event in events if event["kind"] == "ask"]
    told = [event["id"] for event in events if event["kind"] == "tell"]
    print(f"{len(asked)} asked, {len(told)} told, {whole.seconds:.0f} s and {lost.seconds:.0f} s; {lost.best}")
    assert sorted(told) == sorted(asked) == sorted(set(told))
    assert not [e for e in events if e["kind"] == "tell" and "process ended" in str(e["outcome"])]
    assert whole.best is not None
    assert lost.best is not None
    assert whole.best["candidate"] == lost.best["candidate"]
