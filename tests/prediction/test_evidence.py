import math

import pytest

from fsr.features.schema import BOTTLENECKS
from fsr.hardware.gpus import H200
from fsr.prediction.evidence import bottlenecks
from fsr.prediction.predict import predict
from fsr.records import Resources
from fsr.transform.registry import all_actions

N = 1 << 22


def found(make, *sites, resources=None, **launch):
    profile = make.profile(make.launch(list(sites), **launch))
    return bottlenecks(predict(profile, resources or {}, H200, 4.0 * N), H200)


def test_causes_come_largest_first_and_shares_are_of_the_whole(make) -> None:
    causes = found(make, make.site(N, 32))
    assert [c.share for c in causes] == sorted((c.share for c in causes), reverse=True)
    assert 0.9 < sum(c.share for c in causes) <= 1.0 + 1e-9
    assert all(c.name in BOTTLENECKS for c in causes)


def test_scattered_loads_are_shown_by_their_line(make) -> None:
    cause = next(c for c in found(make, make.site(N, 4, line=2), make.site(N, 32, line=7)) if c.name == "uncoalesced")
    assert cause.line == 7
    assert "32.0 sectors of 32 bytes a request, 4 would do" in cause.evidence


def test_queues_of_atomics_are_shown_by_their_line(make) -> None:
    hot = make.site(N, 1, kind="atomic", line=5, serial=float(N), max_same_address=float(N))
    causes = found(make, hot)
    assert (causes[0].name, causes[0].line) == ("atomics", 5)
    assert "updates queue" in causes[0].evidence


def test_waiting_is_shown_by_how_much_of_the_gpu_is_filled(make) -> None:
    cause = next(c for c in found(make, make.site(N, 4), blocks=16, threads=64) if c.name == "latency")
    assert "only 16 of 132 SMs get a block" in cause.evidence


def test_what_cannot_be_launched_has_one_cause(make) -> None:
    causes = found(make, make.site(N, 4), threads=1024, resources={"k": Resources(registers=255)})
    assert [(c.name, c.share) for c in causes] == [("occupancy", 1.0)]
    assert "no block fits on an SM: registers" in causes[0].evidence
    assert not any(math.isnan(c.share) for c in causes)


@pytest.mark.parametrize("action", all_actions(), ids=lambda action: action.name)
def test_every_cause_that_actions_aim_at_is_one_that_can_be_found(action) -> None:
    assert action.aims_at <= set(BOTTLENECKS)
