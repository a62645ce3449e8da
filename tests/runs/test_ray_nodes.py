"""A Ray cluster of three nodes, two of them with a GPU of a type of its own (that nobody ever asks anything). One goes
in the middle of a run: the same winner, and no outcome is lost. A worker goes where a GPU of its type is and waits for
it.

Takes minutes on a small machine: FSR_RAY_NODES=1 has it run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fsr.errors import MissingToolError
from fsr.runs.log import read_events
from fsr.runs.options import RefineOptions
from fsr.runs.result import Result
from fsr.runs.run import Run
from fsr.settings import Settings
from fsr.workers.cluster import ClusterName
from fsr.workers.protocol import Task
from tests.commandline import LARGE_ROW_SUM
from tests.conformance.workers import drain, one
from tests.daemon.stand_in import eventually

psutil = pytest.importorskip("psutil", reason="the package psutil is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("FSR_RAY_NODES"), reason="takes minutes: FSR_RAY_NODES=1 has it run"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of threads and sockets that it leaves
    pytest.mark.timeout(1800),
]
EVALUATIONS = 6
KERNEL = LARGE_ROW_SUM.replace('// entry = "row_sum"', '// entry = "row_sum"\n// reference = "reference.py:row_sum"')
REFERENCE = """
import helper
assert not helper.__file__.startswith({folder!r}), "read where the kernel lies, which is no machine's of a cluster"


def row_sum(x):
    return helper.row_sum(x)
"""
HELPER = """
def row_sum(x):
    return x.sum(axis=1)
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, list[Any]]]:
    """The cluster, and its two nodes beside the head."""
    utilities = pytest.importorskip("ray.cluster_utils")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.99")
    soon = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # a dead node is noticed in seconds
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}
    cluster = utilities.Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [
            cluster.add_node(num_cpus=1, num_gpus=1, resources={f"accelerator_type:{gpu_type}": 1})
            for gpu_type in ("A", "B")
        ]
        cluster.wait_for_nodes()
        yield cluster, nodes
    finally:
        cluster.shutdown()


def refined(folder: Path, address: str, name: str, at_third: Any) -> tuple[Result, list[Mapping[str, Any]]]:
    """The result of a run on the cluster and its events; ``at_third`` is called when the third outcome is there."""
    kernel = folder / "kernels" / f"{name}.cu"
    kernel.parent.mkdir(exist_ok=True)
    kernel.write_text(KERNEL)
    kernel.with_name("reference.py").write_text(REFERENCE.format(folder=str(folder)))
    kernel.with_name("helper.py").write_text(HELPER)
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


def on(node: Any) -> list[Any]:
    """The workers of fsr that run on a node."""
    (raylet,) = node.all_processes["raylet"]
    children = psutil.Process(raylet.process.pid).children()
    return [child for child in children if "Executor" in " ".join(child.cmdline())]


def test_workers_go_where_a_gpu_of_their_type_is_and_wait_for_it(
    cluster: tuple[Any, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsr.workers.ray import cluster_gpus, cluster_workers

    monkeypatch.setenv("PYTHONPATH", ".")
    address, (_, second) = cluster[0].address, cluster[1]
    assert cluster_gpus(ClusterName(address)) == {"A": 1, "B": 1}
    with pytest.raises(MissingToolError, match="no GPU of the type 'C'"):
        cluster_workers(ClusterName(address, "C"), 1, None, gpu=None)
    meant = ClusterName(address, "B")
    with cluster_workers(meant, 1, None, gpu=None) as first:
        assert first.size("device") == 1
        assert one(first, "device", "where", None) in [process.pid for process in on(second)]
        with cluster_workers(meant, 1, None, gpu=None) as later:
            ticket = later.submit("device", Task("tests.workers.tasks:double", 2, 1.0))
            assert later.wait(3.0) == []  # longer than its time, which has not begun
            first.leave_out("device", 0)
            (done,) = drain(later)
            assert (done.ticket, done.result) == (ticket, 4)


def test_a_node_that_goes_in_the_middle_of_a_run_changes_nothing(
    tmp_path: Path, cluster: tuple[Any, list[Any]]
) -> None:
    nodes, address = cluster[1], cluster[0].address
    whole, _ = refined(tmp_path, address, "whole", lambda: None)
    gone: list[Any] = []

    def lose() -> None:
        found: list[Any] = []
        if eventually(lambda: bool(found.extend(filter(on, nodes)) or found)):  # a worker may be about to be replaced
            gone.append(found[0])
            cluster[0].remove_node(found[0], allow_graceful=False)

    lost, events = refined(tmp_path, address, "lost", lose)
    assert gone
    asked = [event["id"] for event in events if event["kind"] == "ask"]
    told = [event["id"] for event in events if event["kind"] == "tell"]
    print(f"{len(asked)} asked, {len(told)} told, {whole.seconds:.0f} s and {lost.seconds:.0f} s; {lost.best}")
    assert sorted(told) == sorted(asked) == sorted(set(told))
    assert not [e for e in events if e["kind"] == "tell" and "process ended" in str(e["outcome"])]
    assert whole.best is not None
    assert lost.best is not None
    assert whole.best["candidate"] == lost.best["candidate"]
