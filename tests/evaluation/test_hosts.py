"""Watched runs that begin on other cores beside a GPU: the same is found, and as it is found one after the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fsr.backends.protocol import RecordingDevice
from fsr.evaluation import session
from fsr.evaluation.hosts import Hosts, idle_hosts
from fsr.evaluation.watching import SILENT, watch
from fsr.records import Candidate
from tests.commandline import ROW_SUM
from tests.evaluation.test_promotion import RACING, World

pytestmark = pytest.mark.xdist_group("clocked")

SHARED = "    __shared__ float tile[64];"
WAITS_NOT = ROW_SUM.replace(  # a neighbour's element that only some orders have written
    "    float sum = 0.0f;",
    f"{SHARED}\n    tile[threadIdx.x] = x[row * cols];\n"
    "    float sum = 0.0f * (row > 0 ? tile[(threadIdx.x + 1) % 64] : 0.0f);",
)
PAST_THE_END = ROW_SUM.replace("y[row] = sum;", "y[row] = sum + 0.0f * x[row * cols + cols];")
BY_BLOCKS = ROW_SUM.replace("// ///\n__global__", "// ///\n__device__ int came;\n__global__").replace(
    "y[row] = sum;", "y[row] = atomicAdd(&came, 1) == 100 ? sum + 1.0f : sum;"
)


def found(world: World, text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[object, int]:
    """What watching a candidate finds, and how many runs were begun on other hosts."""
    begun = list[object]()
    submit = Hosts.submit

    def counted(self: Hosts, work: Callable[[RecordingDevice], object]) -> object:
        begun.append(work)
        return submit(self, work)

    monkeypatch.setattr(session, "idle_hosts", lambda: count)
    monkeypatch.setattr(Hosts, "submit", counted)
    own = session.session_of(world.spec)
    candidate = Candidate(text, world.contract.plan, ("other@kernel",))
    failure, said = watch(own, candidate, own.held_out_cases())
    session.close_sessions()
    assert said == SILENT
    monkeypatch.undo()
    return (failure.evidence() if failure else None), len(begun)


@pytest.mark.parametrize(("text", "kind"), [
    (ROW_SUM, None), (RACING, "race"), (WAITS_NOT, "race"), (PAST_THE_END, "out-of-bounds"), (BY_BLOCKS, "state"),
])  # fmt: skip
def test_the_same_is_found_ahead(text: str, kind: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = list[tuple[object, int]]()
    for count in (0, 3):
        (folder := tmp_path / str(count)).mkdir()
        with monkeypatch.context() as patch:
            results.append(found(World(folder, patch), text, count, patch))
    (before, none), (ahead, some) = results
    assert before == ahead
    assert (before or {}).get("kind") == kind  # type: ignore[attr-defined]
    assert (none, some > 0) == (0, True)


@pytest.mark.parametrize(("cores", "count"), [(1, 0), (2, 0), (8, 1), (16, 3), (32, 4), (128, 4)])
def test_hosts_leave_cores_to_the_workers(cores: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    assert idle_hosts() == count


def test_each_device_is_one_threads_at_a_time_and_is_closed() -> None:
    hosts, seen = Hosts(2), dict[int, set[int]]()
    barrier = threading.Barrier(2, timeout=20)

    def work(device: RecordingDevice) -> int:
        barrier.wait()
        seen.setdefault(id(device), set()).add(threading.get_ident())
        return id(device)

    both = [hosts.submit(work) for _ in range(2)]
    assert len({one.result() for one in both}) == 2
    failing = hosts.submit(lambda device: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    both = [hosts.submit(work) for _ in range(2)]
    assert {one.result() for one in both} == set(seen)  # no device was lost with what failed
    hosts.close()
