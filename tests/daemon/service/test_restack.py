"""Another driver or compiler: what won is verified anew when nothing else is to be done, the rest is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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


def test_the_compiler_of_a_device_is_part_of_what_is_looked_up() -> None:
    (found,) = look("host", "sm_90")
    assert found["stack"].startswith("host ")
