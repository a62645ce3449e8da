"""Features are records: they say what they are, go through JSON, and read what older versions wrote."""

import json

import pytest

from fsr.errors import StorageError
from fsr.features.schema import DEFINITIONS, GROUPS, Access, Binary, Bottleneck, Counters, Features, Source
from fsr.identity import canonical, outcome_from_json, to_json
from fsr.records import Outcome, Status

FULL = Features(
    Source(launches=2, threads_per_block=256, grid_threads=1 << 20),
    Binary(registers=40, shared_bytes=4096, occupancy=0.5, occupancy_limit="shared"),
    Access(recorded_share=1.0, useful_share=0.125),
    Counters(dram=71.5),
    bottlenecks=(Bottleneck("uncoalesced", 0.8, "line 3 reads 'x'", 3, "y[i] = x[i * n];"),),
)


def test_every_definition_says_unit_range_and_meaning() -> None:
    assert {d.group for d in DEFINITIONS} == set(GROUPS)
    for d in DEFINITIONS:
        assert d.unit, d.name
        assert d.meaning, d.name
        assert d.most > 0, d.name
        assert d.kind in ("int", "float", "str"), d.name
    assert len({(d.group, d.name) for d in DEFINITIONS}) == len(DEFINITIONS)


def test_there_are_the_fields_24_counters() -> None:
    metrics = [d.metric for d in DEFINITIONS if d.metric]
    assert len(set(metrics)) == len(metrics) >= 24
    assert {d.group for d in DEFINITIONS if d.metric} == {"counters"}


def test_outcomes_with_features_survive_json() -> None:
    outcome = Outcome(Status.CORRECT, "tests", features=FULL)
    assert outcome_from_json(json.loads(canonical(outcome))) == outcome
    assert "spill_bytes" not in to_json(FULL)["binary"]  # type: ignore[call-overload,index]  # unknown: not stored


def test_numbers_by_name_of_earlier_versions_are_read() -> None:
    old = {
        "threads_per_block": 128.0,
        "launches": 1.0,
        "shared_bytes": 512.0,
        "bound:latency": 0.2,
        "bound:atomics": 0.7,
    }
    found = Features.from_json(old)
    assert found.source == Source(launches=1, threads_per_block=128)
    assert found.binary == Binary(shared_bytes=512)
    assert [(b.name, b.share) for b in found.bottlenecks] == [("atomics", 0.7), ("latency", 0.2)]


@pytest.mark.parametrize(
    ("data", "told"),
    [({"version": 99}, "schema version 99"), ({"version": 1, "binary": {"registers": 1, "aura": 7}}, "aura")],
)
def test_what_a_newer_version_wrote_is_refused_by_name(data, told) -> None:
    with pytest.raises(ValueError, match=told):
        Features.from_json(data)


def test_merging_adds_field_by_field_and_replaces_causes() -> None:
    later = Features(binary=Binary(registers=32, instructions=100), bottlenecks=(Bottleneck("latency", 1.0),))
    both = FULL.merged(later)
    assert both.binary == Binary(
        registers=32, shared_bytes=4096, occupancy=0.5, occupancy_limit="shared", instructions=100
    )
    assert both.bottlenecks == later.bottlenecks
    assert (both.source, both.access) == (FULL.source, FULL.access)
    assert both.merged(Features()) == both


def test_causes_quote_the_line_they_are_about() -> None:
    found = Features(bottlenecks=(Bottleneck("atomics", 1.0, line=2), Bottleneck("launch", 0.1, line=9)))
    assert [b.code for b in found.quoting("a\n  atomicAdd(x, 1);\n").bottlenecks] == ["atomicAdd(x, 1);", ""]


def test_a_run_of_a_newer_fsr_is_refused_with_one_message(tmp_path) -> None:
    from fsr.runs.log import EventLog
    from fsr.runs.resuming import RunStart

    outcome = {**to_json(Outcome(Status.CORRECT, "tests")), "features": {"version": 99}}  # type: ignore[dict-item]
    with EventLog(tmp_path / "run") as log:
        log.append("start", options={"kernel": "k.cu"}, source="", contract="", given=None, known=[], baseline=outcome)
    with pytest.raises(StorageError, match="schema version 99"):
        RunStart.read(tmp_path / "run")
