"""A run as pages show it: what was tried when, what came of it, what the winner changed and why it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsr.errors import UsageError
from fsr.features.descriptor import descriptor
from fsr.features.schema import Features
from fsr.hardware.gpus import target_of
from fsr.records import Json
from fsr.runs.record import RunRecord

WARP = 32
RIGHT = frozenset({"screened", "correct", "promoted"})


def run_view(record: RunRecord) -> dict[str, Json]:
    """All that the views of a run are drawn from; JSON.

    trials: one for each told candidate, in the order of telling: id, parent, move, proposer, status, at_s (since the
    search began), time_ns, speedup, cell of the archive, threads (a block), intensity (thread instructions a byte of
    DRAM traffic), rate (thread instructions a second). roof: of the target, None where nothing is known of it.
    Raises StorageError for a damaged log."""
    events = record.events
    start: Mapping[str, Any] = next((e for e in events if e["kind"] == "start"), {})
    asks = {e["id"]: e for e in events if e["kind"] == "ask"}
    settled = {e["id"]: e["outcome"] for e in events if e["kind"] == "settle"}
    promoted = {e["id"]: e["outcome"] for e in events if e["kind"] == "promote"}
    baseline_ns = ((start.get("baseline") or {}).get("timing") or {}).get("median_ns")
    trials = [
        _trial(asks[e["id"]], e, settled.get(e["id"], e["outcome"]), promoted.get(e["id"]), start["at"], baseline_ns)
        for e in events
        if e["kind"] == "tell" and e["id"] in asks
    ]  # fmt: skip
    result: Any = record.result
    options: Mapping[str, Any] = start.get("options") or {}
    return {
        "run": record.name, "kernel": options.get("kernel", ""), "options": dict(options),
        "going_on": record.going_on, "standing": record.standing(), "result": result, "trials": trials,
        "roof": _roof(_arch(result, options)),
        "original": asks[0]["candidate"]["source"] if 0 in asks else "",
        "winner": _winner(asks, result),
        "promotions": [{"id": number, **_verdict(outcome)} for number, outcome in promoted.items()],
    }  # fmt: skip


def _arch(result: Mapping[str, Any] | None, options: Mapping[str, Any]) -> str:
    """What the run's times hold for."""
    device = (result or {}).get("device") or {}
    return str(
        device.get("target")
        or (device.get("arch") if options.get("device") != "host" else "")
        or options.get("target", "")
    )


def _trial(
    ask: Mapping[str, Any], tell: Mapping[str, Any], outcome: Mapping[str, Any], promoted: Mapping[str, Any] | None,
    began: float, baseline_ns: float | None,
) -> dict[str, Json]:  # fmt: skip
    features = Features.from_json(outcome.get("features") or {})
    timing = outcome.get("timing") or {}
    time_ns = timing.get("median_ns") if outcome["status"] in RIGHT else None
    source, access = features.source, features.access
    instructions = access.warp_instructions if access is not None else None
    traffic = access.distinct_bytes if access is not None else None
    return {
        "id": ask["id"], "parent": ask["parent"], "move": ask["move"], "proposer": ask["proposer"] or ask["origin"],
        "status": promoted["status"] if promoted is not None else outcome["status"], "stage": outcome.get("stage", ""),
        "at_s": round(tell["at"] - began, 2), "time_ns": time_ns,
        "speedup": baseline_ns / time_ns if baseline_ns and time_ns else None,
        "cell": list(descriptor(features)) if time_ns else None,
        "threads": source.threads_per_block if source is not None else None,
        "intensity": WARP * instructions / traffic if instructions and traffic else None,
        "rate": WARP * instructions / (time_ns * 1e-9) if instructions and time_ns else None,
        "note": timing.get("note", ""),
    }  # fmt: skip


def _verdict(outcome: Mapping[str, Any]) -> dict[str, Json]:
    """What promotion said of a candidate."""
    evidence = outcome.get("evidence") or {}
    return {
        "status": outcome["status"], "verdict": evidence.get("verdict"), "held_out": evidence.get("held_out"),
        "sanitizers": evidence.get("sanitizers"), "cases": outcome.get("cases"), "passed": outcome.get("passed"),
    }  # fmt: skip


def _winner(asks: Mapping[int, Mapping[str, Any]], result: Mapping[str, Any] | None) -> str:
    """The winner's source; '' when there is none."""
    wanted = ((result or {}).get("best") or {}).get("candidate")
    return next((ask["candidate"]["source"] for ask in asks.values() if ask["hash"] == wanted), "") if wanted else ""


def _roof(arch: str) -> dict[str, Json] | None:
    """The limits of an architecture's GPU that is known: DRAM bytes and thread instructions a second."""
    try:
        gpu = target_of(arch)
    except UsageError:
        return None
    issue = gpu.issue_per_clock * gpu.warp_size * gpu.sm_count * gpu.clock_ghz * 1e9
    return {"name": gpu.name, "bytes_per_s": gpu.memory_bytes_per_s, "instructions_per_s": issue}
