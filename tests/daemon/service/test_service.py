"""The service with stand-ins for runs and for the machine: what is saved is refined, and nobody is disturbed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from fsr.errors import StorageError
from fsrd.config import Config, WatchedFolder, WinTable
from fsrd.jobs import store as stores
from fsrd.jobs.job import Job, Request, State
from fsrd.politeness.rules import PoliteTable
from fsrd.service import service as services
from fsrd.service.devices import Slot
from fsrd.service.service import Service
from tests.daemon.stand_in import FakeSensors, eventually, kernel, service_of


@pytest.fixture
def sensors() -> FakeSensors:
    return FakeSensors()


@pytest.fixture
def service(tmp_path: Path, sensors: FakeSensors) -> Iterator[Service]:
    config = Config(
        folder=(WatchedFolder(path=str(tmp_path / "kernels")),), polite=PoliteTable(idle_s=0.3, daily_budget="1h")
    )
    service = service_of(tmp_path, config, sensors=sensors)
    service.start()
    yield service
    service.close()


def polite_config(folder: Path, polite: PoliteTable) -> Config:
    return Config(folder=(WatchedFolder(path=str(folder / "kernels")),), polite=polite)


def done(service: Service, count: int) -> bool:
    return eventually(lambda: service.store.counts()["done"] == count)


def test_what_is_saved_is_refined_and_its_winner_lies_beside_it(
    tmp_path: Path, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [kernel(tmp_path / "kernels", name) for name in "abc"]
    assert done(service, 3)
    assert {(p.parent / ".fsr" / f"{p.stem}.fsr.cu").read_text() for p in paths} == {"winner"}
    assert paths[0].read_text().startswith("// work")
    assert eventually(lambda: {w.standing for w in service.workers} == {"idle"})
    kernel(tmp_path / "kernels", "a", "work 0.06")
    assert done(service, 4)
    assert service.status()["jobs"]["queued"] == 0
    assert service.status()["spent_today_s"] > 0
    assert service.health() == []
    kinds = [event["kind"] for _, event in service.bus.after(0, 0) or []]
    assert kinds.count("win") == 4
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    assert "progress" in kinds


def test_both_gpus_work_and_never_on_one_kernel(tmp_path: Path, service: Service) -> None:
    for name in "ab":
        kernel(tmp_path / "kernels", name, "work 30")

    def at_work() -> set[int]:
        return {event["job"] for _, event in service.bus.after(0, 0) or [] if event["kind"] == "progress"}

    assert eventually(lambda: len(at_work()) == 2)  # both have read their kernels by now
    jobs = [worker.job for worker in service.workers]
    assert len({job.kernel for job in jobs if job is not None}) == 2
    kernel(tmp_path / "kernels", "a", "work 0.1")  # saved again while it runs: the old run ends, the new one begins
    assert eventually(lambda: service.store.counts()["superseded"] == 1)
    assert done(service, 1)
    assert service.store.jobs([State.DONE])[0].kernel.endswith("a.cu")
    service.store.cancel(next(j.id for j in service.store.jobs([State.RUNNING])))
    assert eventually(lambda: service.store.counts()["cancelled"] == 1)


@pytest.mark.parametrize("does", ["work 4", "deaf 4"])
def test_it_yields_and_goes_on_afterwards(tmp_path: Path, service: Service, sensors: FakeSensors, does: str) -> None:
    """A run that does not pause in time is ended, and resumed later."""
    kernel(tmp_path / "kernels", "a", does)
    assert eventually(lambda: service.store.jobs([State.RUNNING]) and service.store.jobs()[0].run)
    sensors.users = {0: "python (1234)", 1: "python (1234)"}

    def yielded() -> bool:
        standing = {worker.standing for worker in service.workers}
        waits = any(s.startswith("waits: GPU") for s in standing)
        return waits or any(s.startswith("paused: GPU") for s in standing)

    assert eventually(yielded)
    if does.startswith("deaf"):
        assert eventually(lambda: service.store.counts()["queued"] == 1)
    assert service.store.counts()["done"] == 0
    sensors.users = {}
    assert done(service, 1)
    assert service.store.jobs()[0].run == "run-of-a.cu"


def test_what_runs_is_paused_when_the_days_budget_is_used_up_and_goes_on_the_day_after(
    tmp_path: Path, sensors: FakeSensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MIND_S", 0.05)
    polite = PoliteTable(daily_budget="1s", quiet_hours=("22:00-23:00",))
    service = service_of(tmp_path, polite_config(tmp_path, polite), sensors=sensors)
    kernel(tmp_path / "kernels", "a", "work 60")
    service.start()

    def stands(words: str) -> bool:
        return eventually(lambda: any(words in worker.standing for worker in service.workers))

    try:
        assert stands("paused: the daily budget of 1s is used up")
        sensors.at = datetime(2026, 2, 1, 22, 30)
        assert stands("paused: quiet hours")
        sensors.at, sensors.battery = datetime(2026, 2, 1, 23, 30), True
        assert stands("paused: on battery")
        assert service.store.counts()["done"] == 0
        sensors.battery = False
        assert stands("daily budget")  # of the next day
        sensors.at = datetime(2026, 2, 2, 12, 0)
        assert stands("refines a.cu")
        assert service.store.spent_s("2026-01-31") >= 1.0
    finally:
        service.close()


def test_runs_are_nice_to_other_programs_and_to_the_disk(tmp_path: Path) -> None:
    script = """
import json, os, psutil, sys
from fsrd.running.child import _be_nice
order = json.loads(sys.stdin.readline())
_be_nice(order["nice"], order["idle_disk"])
told = f"{os.nice(0)} {psutil.Process().ionice().ioclass.name}"
print(json.dumps({"kind": "fault", "error": told, "retry": False}), flush=True)
"""
    config = polite_config(tmp_path, PoliteTable(nice=3))
    service = service_of(tmp_path, config, command=(sys.executable, "-c", script))
    kernel(tmp_path / "kernels", "a")
    service.start()
    try:
        assert eventually(lambda: service.store.counts()["failed"] == 1)
        assert service.store.jobs()[0].error == f"{min(19, os.nice(0) + 3)} IOPRIO_CLASS_IDLE"
    finally:
        service.close()


def test_failures_are_told_and_only_some_are_tried_again(tmp_path: Path, service: Service) -> None:
    for name, does in (("good", "fail for good"), ("again", "fail"), ("dead", "die")):
        kernel(tmp_path / "kernels", name, does)

    def attempts() -> dict[str, tuple[str, int]]:
        return {Path(job.kernel).stem: (job.state.value, job.attempts) for job in service.store.jobs()}

    wanted = {"good": ("failed", 1), "again": ("queued", 1), "dead": ("queued", 1)}
    assert eventually(lambda: attempts() == wanted), attempts()
    errors = {Path(job.kernel).stem: job.error for job in service.store.jobs()}
    assert errors["good"] == "the kernel is wrong"
    assert "no memory left" in errors["dead"]


def test_a_kernel_that_is_itself_at_fault_is_tried_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "BACK_OFF_S", 0.1)
    service = service_of(tmp_path)
    service.start()
    try:
        kernel(tmp_path / "kernels", "wrong", "fail twice")
        assert eventually(lambda: service.store.counts()["failed"] == 1)
        (job,) = service.store.jobs()
        assert job.attempts == 2
    finally:
        service.close()


def test_the_winner_of_an_earlier_content_goes_when_the_new_one_has_none(tmp_path: Path, service: Service) -> None:
    path = kernel(tmp_path / "kernels", "a")
    output = tmp_path / "kernels" / ".fsr" / "a.fsr.cu"
    assert done(service, 1)
    assert output.exists()
    kernel(tmp_path / "kernels", "a", "work 0.05 unchanged")
    assert done(service, 2)
    assert eventually(lambda: not output.exists())
    assert not output.with_suffix(".json").exists()
    output.write_text("mine")  # by somebody else: there is no evidence of the job's run beside it
    kernel(tmp_path / "kernels", "a", "work 0.06 unchanged")
    assert done(service, 3)
    assert output.read_text() == "mine"
    assert path.exists()


def test_it_says_when_what_is_saved_cannot_be_queued(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, full = service.store.submit, [True]

    def submitted(requests: Iterator[Request]) -> list[Job]:
        if full[0]:
            raise StorageError("database or disk is full", where="jobs.db")
        return submit(requests)

    monkeypatch.setattr(service.store, "submit", submitted)
    kernel(tmp_path / "kernels", "a")
    assert eventually(lambda: "disk is full" in "".join(service.status()["wrong"]))
    full[0] = False
    assert done(service, 1)
    assert eventually(lambda: service.status()["wrong"] == [])


def test_a_pause_of_its_owner_outlives_the_service(tmp_path: Path) -> None:
    first = service_of(tmp_path)
    first.start()
    first.pause()
    kernel(tmp_path / "kernels", "a")
    assert eventually(lambda: first.store.counts()["queued"] == 1)
    assert eventually(lambda: any("paused" in worker.standing for worker in first.workers))
    first.close()
    second = service_of(tmp_path)
    second.start()
    try:
        assert second.paused
        assert not eventually(lambda: second.store.counts()["done"], 1.0)
        second.resume()
        assert done(second, 1)
    finally:
        second.close()


def test_jobs_of_kernels_that_went_while_it_was_off_are_dropped(tmp_path: Path) -> None:
    first = service_of(tmp_path)
    first.pause()
    first.start()
    path = kernel(tmp_path / "kernels", "a")
    assert eventually(lambda: first.store.counts()["queued"] == 1)
    first.close()
    path.unlink()
    kernel(tmp_path / "kernels", "b")
    second = service_of(tmp_path)
    second.start()
    try:
        assert eventually(lambda: second.store.counts()["superseded"] == 1)
        assert [Path(job.kernel).name for job in second.store.jobs([State.QUEUED])] == ["b.cu"]
    finally:
        second.close()


def test_each_hardware_has_its_winner_in_a_place_of_its_own(tmp_path: Path) -> None:
    hook = tmp_path / "told"
    config = Config(
        folder=(WatchedFolder(path=str(tmp_path / "kernels"), results=str(tmp_path / "out")),),
        win=WinTable(command=("sh", "-c", f'echo "$FSR_KERNEL $FSR_SPEEDUP $FSR_BASIS" >> {hook}')),
    )
    service = service_of(tmp_path, config, slots=(Slot("cuda:0", "NVIDIA H200"), Slot("cuda:1", "NVIDIA L4")))
    (tmp_path / "kernels" / "sub").mkdir()
    path = kernel(tmp_path / "kernels" / "sub", "a")
    service.start()
    try:
        assert done(service, 2)
        found = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.cu")}
        assert found == {"sub/nvidia-h200/a.fsr.cu", "sub/nvidia-l4/a.fsr.cu"}
        assert eventually(lambda: hook.exists() and hook.read_text() == f"{path} 2 predicted\n" * 2)
    finally:
        service.close()
