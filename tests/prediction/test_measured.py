import pytest

from fsr.features.schema import Bottleneck, Counters, Features
from fsr.prediction.measured import judged

PREDICTED = (Bottleneck("latency", 0.7, "8 of 64 warps run"), Bottleneck("bandwidth", 0.3, "16 MB pass DRAM"))


def test_without_counters_the_prediction_stands() -> None:
    assert judged(Features(bottlenecks=PREDICTED)) == PREDICTED
    assert judged(Features(bottlenecks=PREDICTED, counters=Counters(registers=32))) == PREDICTED


def test_a_busy_dram_makes_bandwidth_the_first_cause_and_says_so() -> None:
    causes = judged(Features(bottlenecks=PREDICTED, counters=Counters(dram=92.0, l2=40.0, stalled_long=80.0)))
    assert causes[0].name == "bandwidth"
    assert causes[0].evidence == "16 MB pass DRAM; counted: DRAM at 92 % of its peak rate"
    assert sum(cause.share for cause in causes) == pytest.approx(1.0)


def test_idle_units_and_waiting_warps_are_latency() -> None:
    causes = judged(Features(bottlenecks=PREDICTED, counters=Counters(dram=10.0, l1=5.0, stalled_long=90.0)))
    assert causes[0].name == "latency"
    assert "90 % of warps wait for global memory" in causes[0].evidence


def test_counters_alone_name_a_cause() -> None:
    causes = judged(Features(counters=Counters(fp32=88.0, dram=12.0)))
    assert (causes[0].name, causes[0].evidence) == ("compute", "counted: FP32 pipe at 88 % of its peak")
