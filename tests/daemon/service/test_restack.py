"""Another driver or compiler: what won is verified anew when nothing else is to be done, the rest is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.errors import MissingToolError
from fsrd.config import Config, RunTable, WatchedFolder
from fsrd.jobs.job import Priority, State
from fsrd.service import service as services
from fsrd.service.devices import Slot, look
from tests.daemon.stand_in import eventually, kernel, service_of

OLD = Slot("cuda:0", "H200", "driver 580, nvrtc 13.0")
NEW = replace(OLD, stack="driver 590, nvrtc 13.1")


def test_winners_of_another_driver_are_verified_anew_once_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.05)
    monkeypatch.setattr(services, "LOOK_AGAIN_S", 0.1)
    here = [OLD]
    service = service_of(tmp_path, slots=(OLD,), look=lambda: list(here))
    won, lost = kernel(tmp_path / "kernels", "won"), kernel(tmp_path / "kernels", "lost", "fail for good")
    service.start()
    try:
        assert eventually(lambda: service.store.counts()["done"] == service.store.counts()["failed"] == 1)
        service.pause()
        here[:] = [NEW]
        assert eventually(lambda: service.store.counts()["queued"] == 1)
        kernel(tmp_path / "kernels", "fresh")
        assert eventually(lambda: service.store.counts()["queued"] == 2)
        again = next(job for job in service.store.jobs([State.QUEUED]) if job.kernel == str(won))
        assert (again.priority, again.run) == (Priority.IDLE, "")
        assert again.reason == "its winner was found with driver 580, nvrtc 13.0"
        service.resume()
        assert eventually(lambda: service.store.counts()["done"] == 3)
        done = sorted(service.store.jobs([State.DONE]), key=lambda job: job.ended or 0.0)
        assert [Path(job.kernel).stem for job in done] == ["won", "fresh", "won"]
        assert [job.stack for job in done] == [OLD.stack, NEW.stack, NEW.stack]
        service.restack([NEW])
        assert len([job for job in service.store.jobs() if job.kernel == str(lost)]) == 1
    finally:
        service.close()
    later = service_of(tmp_path, slots=(NEW,))  # and at the next start nothing is verified a second time
    later.start()
    try:
        assert later.watcher is not None
        assert later.watcher.ready.wait(20)
        assert later.store.counts()["queued"] == later.store.counts()["running"] == 0
    finally:
        later.close()


def test_a_device_that_joins_takes_jobs_and_one_that_goes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.05)
    monkeypatch.setattr(services, "CLUSTER_LOOK_S", 0.1)
    here: list[Slot] = []  # the head does not answer yet
    (tmp_path / "kernels").mkdir()
    config = Config(folder=(WatchedFolder(path=str(tmp_path / "kernels")),), run=RunTable(ray="auto"))
    service = service_of(tmp_path, config, slots=(), look=lambda: list(here))
    kernel(tmp_path / "kernels", "one")
    service.start()
    try:
        assert eventually(lambda: service.watcher is not None and service.watcher.kernels == 1)
        assert service.store.counts()["queued"] == 0
        here[:] = [Slot(f"auto {name} 0", name, ray=f"auto#{name}") for name in ("H200", "L4")]
        assert eventually(lambda: service.store.counts()["done"] == 2)
        assert {job.hardware for job in service.store.jobs([State.DONE])} == {"H200", "L4"}  # a winner for each
        here.pop()
        kernel(tmp_path / "kernels", "one", "work 0.06")
        assert eventually(lambda: service.store.counts()["done"] == 4)
        assert len(service.workers) == 2
    finally:
        service.close()


def test_a_cluster_has_a_slot_for_every_gpu_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"H200": 2, "L4": 1, "": 3}
    monkeypatch.setattr("fsr.workers.ray.cluster_gpus", lambda _: found)
    slots = [Slot(**row) for row in look("auto", "sm_90", "head:6379")]
    assert [(slot.hardware, slot.run_device, slot.ray) for slot in slots] == [
        ("H200", "cuda", "head:6379#H200"), ("H200", "cuda", "head:6379#H200"), ("L4", "cuda", "head:6379#L4"),
    ]  # fmt: skip
    assert len({slot.device for slot in slots}) == 3
    assert [row["hardware"] for row in look("auto", "sm_90", "head:6379#L4")] == ["L4"]
    (host,) = (Slot(**row) for row in look("host", "sm_90", "head:6379"))
    assert (host.run_device, host.ray) == ("host", "head:6379")
    found.clear()
    assert [row["ray"] for row in look("auto", "sm_90", "head:6379")] == ["head:6379"]
    with pytest.raises(MissingToolError, match="no GPU of a type"):
        look("cuda", "sm_90", "head:6379")


def test_the_compiler_of_a_device_is_part_of_what_is_looked_up() -> None:
    (found,) = look("host", "sm_90")
    assert found["stack"].startswith("host ")
