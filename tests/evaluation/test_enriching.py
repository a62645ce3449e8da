"""What is found out about candidates beside a GPU: recordings on this process's host device, counters on the device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.backend import Counted
from fsr.backends.cuda.backend import CudaBackend
from fsr.evaluation import enriching
from fsr.evaluation.enriching import counters_task, record_task
from fsr.evaluation.spec import EnrichRequest
from fsr.features.schema import Counters, Features
from fsr.sandbox.confine import Support
from tests.commandline import ROW_SUM
from tests.evaluation.test_promotion import World, world  # noqa: F401  # a fixture


@pytest.fixture(autouse=True)
def _desk():
    yield
    enriching.DESK.close()


def request_of(world: World, source: str = ROW_SUM, untrusted: bool = False) -> EnrichRequest:  # noqa: F811
    candidate = world.candidate(32, source)
    return EnrichRequest(world.spec, candidate, world.compiled(candidate), untrusted)


def test_a_recording_gives_accesses_causes_and_the_line_they_are_about(world: World) -> None:  # noqa: F811
    found = record_task(request_of(world))
    assert (found.note, found.never) == ("", False)
    features = found.features
    assert features.access is not None
    assert features.access.sectors_a_request is not None
    assert features.source is not None
    assert features.source.loops == 1
    assert sum(cause.share for cause in features.bottlenecks) == pytest.approx(1.0, abs=0.2)
    assert all(cause.evidence for cause in features.bottlenecks)
    scattered = [cause for cause in features.bottlenecks if cause.name == "uncoalesced"]
    assert all("sum += x" in cause.code for cause in scattered)


def test_what_only_a_gpu_executes_still_has_a_text(world: World) -> None:  # noqa: F811
    request = request_of(world)
    ptx = ROW_SUM.replace("float sum = 0.0f;", 'float sum = 0.0f; asm volatile("tcgen05.fence::before_thread_sync;");')
    found = record_task(replace(request, candidate=replace(request.candidate, source=ptx)))
    assert found.features.source is not None
    assert found.features.bottlenecks == ()


def test_models_candidates_are_recorded_only_where_they_are_contained(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enriching, "support", lambda: Support(0, False))
    found = record_task(request_of(world, untrusted=True))
    assert found.features == Features()
    assert "nothing contains them (Landlock and seccomp)" in found.note


def test_timed_sizes_that_are_too_large_are_told_for_good(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = request_of(world)
    monkeypatch.setattr(enriching, "MOST_RECORDED_BYTES", 10)
    monkeypatch.setattr(enriching, "MOST_COUNTED_BYTES", 10)
    for task in (record_task, counters_task):
        found = task(request)
        assert found.never
        assert "too large" in found.note


def test_counters_are_those_of_the_device(world: World, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    seen = []

    def count(_, image, launches, buffers, index) -> Counted:
        seen.append((launches[0].block, sorted(b.name for b in buffers), index))
        return Counted(Counters(dram=50.0))

    monkeypatch.setattr(CudaBackend, "count", count)
    assert counters_task(request_of(world)).features == Features(counters=Counters(dram=50.0))
    assert seen == [((32, 1, 1), ["x", "y"], 0)]
    monkeypatch.setattr(CudaBackend, "count", lambda *_: Counted(note="ncu is not installed", never=True))
    refused = counters_task(request_of(world))
    assert (refused.note, refused.never) == ("ncu is not installed", True)
