"""What builds left without a winner becomes jobs, once, and nothing is lost between the two queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsr.builds.queue import put, queue_of, waiting
from fsrd.jobs.job import Priority, State
from fsrd.service import service as services
from tests.daemon.stand_in import eventually, kernel, service_of


def test_kernels_that_builds_left_are_refined_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.1)
    service = service_of(tmp_path)
    queue = queue_of(service.settings.home)
    inside, outside = kernel(tmp_path / "kernels", "in"), kernel(tmp_path, "out", "work 0.06")
    changed, host = kernel(tmp_path, "changed", "work 0.07"), tmp_path / "host.cu"
    host.write_text("int main() {}\n")
    for path in (inside, outside, changed, host):
        put(queue, path)
    changed.write_text("// saved again\n" + changed.read_text())
    (queue / "odd.job").write_text("no job")
    put(queue, kernel(tmp_path, "\udcff", "work 0.08"))  # a name that is no UTF-8
    service.start()
    try:
        assert eventually(lambda: list(waiting(queue)) == [] and service.store.counts()["done"] == 2)
        jobs = {Path(job.kernel).name: job for job in service.store.jobs([State.DONE])}
        assert sorted(jobs) == ["in.cu", "out.cu"]
        assert (jobs["out.cu"].priority, jobs["out.cu"].reason) == (Priority.MISSED, "a build missed")
        assert (tmp_path / ".fsr" / "out.fsr.cu").read_text() == "winner"
        put(queue, outside)  # built again before its winner is taken: the job is done, and stays so
        assert eventually(lambda: list(waiting(queue)) == [])
        assert len(service.store.jobs()) == 2
    finally:
        service.close()


def test_a_build_with_macros_of_its_own_is_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.1)
    service = service_of(tmp_path)
    queue, orders = queue_of(service.settings.home), []
    started = services.RunProcess

    def noted(order: Any, command: Any) -> Any:
        orders.append(order["options"])
        return started(order, command)

    monkeypatch.setattr(services, "RunProcess", noted)
    path = kernel(tmp_path / "kernels", "in")
    for defines in ((), ("N=4",), ("N=8",)):
        put(queue, path, [str(tmp_path)] if defines else [], defines)
    service.start()
    try:
        assert eventually(lambda: list(waiting(queue)) == [] and service.store.counts()["done"] == 3)
        assert {(o["include_dirs"], o["defines"]) for o in orders} == {
            ((), ()), ((str(tmp_path),), ("N=4",)), ((str(tmp_path),), ("N=8",))
        }  # fmt: skip
        assert len({o["output"] for o in orders}) == 3
    finally:
        service.close()


def test_a_job_stays_in_the_folder_until_it_is_queued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.05)
    service = service_of(tmp_path)
    service.pause()
    put(queue_of(service.settings.home), kernel(tmp_path, "out"))
    submit, broken = service.store.submit, [True]

    def failing(requests: object) -> object:
        found = list(requests)  # type: ignore[call-overload]
        if broken and found and found[0].priority == Priority.MISSED:
            broken.pop()
            raise OSError("no space")
        return submit(found)

    monkeypatch.setattr(service.store, "submit", failing)
    service.start()
    try:
        assert eventually(lambda: service.store.counts()["queued"] == 1)
        assert not broken
        assert eventually(lambda: list(waiting(queue_of(service.settings.home))) == [])
    finally:
        service.close()
