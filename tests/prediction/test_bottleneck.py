from fsr.prediction.bottleneck import NAMES, WORDS, bottlenecks


def test_causes_come_largest_first_with_shares_and_words() -> None:
    found = bottlenecks({"latency": 10.0, "bandwidth": 85.0, "launch": 5.0})
    assert [(b.name, b.share) for b in found] == [("bandwidth", 0.85), ("latency", 0.1), ("launch", 0.05)]
    assert found[0].words == WORDS["bandwidth"]


def test_next_to_nothing_is_left_out_but_never_the_largest() -> None:
    assert [b.name for b in bottlenecks({"compute": 0.999, "atomics": 0.001})] == ["compute"]
    assert [b.name for b in bottlenecks({"compute": 0.0})] == ["compute"]
    assert bottlenecks({}) == []


def test_the_names_are_those_that_actions_aim_at() -> None:
    expected = {
        "uncoalesced", "atomics", "latency", "occupancy", "bandwidth", "compute", "shared-conflicts", "instructions",
        "launch",
    }  # fmt: skip
    assert set(NAMES) == expected
