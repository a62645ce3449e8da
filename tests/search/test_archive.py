"""The archive keeps the fastest of each kind."""

from __future__ import annotations

from dataclasses import replace

from fsr.features.descriptor import descriptor
from fsr.features.schema import Features
from fsr.records import Status
from fsr.search.archive import Archive
from fsr.search.proposal import Proposal, Trial
from tests.search.scripted import BASELINE, failed, timed


def trial(number: int, time_ns: float, **features: float) -> Trial:
    return Trial(Proposal(number, BASELINE, f"h{number}", None, "m", "action"), timed(time_ns, **features))


def test_the_faster_of_a_cell_stays() -> None:
    archive = Archive()
    assert archive.add(trial(1, 100.0, threads_per_block=128))
    assert not archive.add(trial(2, 120.0, threads_per_block=128))
    assert archive.add(trial(3, 80.0, threads_per_block=128))
    assert [t.proposal.id for t in archive] == [3]


def test_another_design_keeps_its_own_cell() -> None:
    archive = Archive()
    archive.add(trial(1, 100.0, threads_per_block=128))
    archive.add(trial(2, 300.0, threads_per_block=128, shared_bytes=4096))
    archive.add(trial(3, 200.0, threads_per_block=1024, launches=2))
    assert [t.proposal.id for t in archive.elites()] == [1, 3, 2]
    assert archive.best is not None
    assert archive.best.proposal.id == 1


def test_what_was_screened_only_is_an_elite_but_not_the_best() -> None:
    archive, fast = Archive(), trial(2, 90.0, threads_per_block=512)
    archive.add(trial(1, 100.0, threads_per_block=128))
    assert archive.add(Trial(fast.proposal, replace(fast.outcome, status=Status.SCREENED)))
    assert [t.proposal.id for t in archive] == [2, 1]
    assert archive.best is not None
    assert archive.best.proposal.id == 1


def test_failures_are_no_elites() -> None:
    archive = Archive()
    assert not archive.add(Trial(Proposal(1, BASELINE, "h", None, "m", "action"), failed(Status.CRASHED)))
    assert len(archive) == 0
    assert archive.best is None


def of(features: dict[str, float]) -> tuple[int, ...]:
    return descriptor(Features.from_json(features))


def test_descriptors_tell_designs_apart() -> None:
    plain = of({"threads_per_block": 256.0, "grid_threads": 1e6})
    assert plain == of({"threads_per_block": 300.0, "grid_threads": 1e6})
    assert plain != of({"threads_per_block": 512.0, "grid_threads": 1e6})
    assert plain != of({"threads_per_block": 256.0, "grid_threads": 1e3})
    assert of({"shared_bytes": 20000.0})[2] == 2
    assert of({"launches": 9.0})[3] == 3
