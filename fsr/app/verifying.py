"""Verifying stored winners anew: those in quarantine before they are served, those that are served at any time.

Nothing that a winner brings along is believed but its candidate: the files that builds use are written anew from the
kernel that lies here, the evidence from what was measured here, and the key from this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.app.checking import Asked, Judged, judge_candidate
from fsr.backends.select import backend_named, parse_device, resolve_device
from fsr.cache.digest import text_digest
from fsr.cache.entry import Entry
from fsr.cache.quarantine import held, let_go
from fsr.cache.store import Store
from fsr.errors import FsrError
from fsr.given import of_key
from fsr.identity import candidate_from_json, to_json
from fsr.records import Candidate
from fsr.runs.caching import cache_key, device_fields
from fsr.runs.kernel import Kernel, load_kernel
from fsr.runs.options import RefineOptions
from fsr.runs.outputs import published, render_files

UNDECIDED = (
    "invalid",
    "compile_failed",
    "timed_out",
)  # of a GPU's winner on the host device: it may lack what that has


@dataclass(frozen=True, slots=True)
class Verified:
    """key: of the entry as it was stored. kernel: its file here. state: 'served', 'removed', or 'left' where this
    machine cannot decide. why: in a sentence."""

    key: str
    kernel: Path
    state: str
    why: str


def verify(store: Store, kernel: Path, options: RefineOptions) -> Iterator[Verified]:
    """Test and time again all winners of a kernel file, in quarantine and served, one after another. What does not
    hold is removed; what this device cannot decide, as how fast a winner is on another kind of GPU, is left where it
    is. Raises FsrError."""
    here = gpu_name(options.device)
    source = text_digest(kernel.read_bytes())
    apart = [(key, entry, True) for key, entry in held(store, source)]
    served = [(row["key"], entry, False) for row, entry in store.entries() if row["source"] == source]
    for key, entry, quarantined in (*apart, *served):
        if entry is None:
            yield _dropped(store, key, kernel, quarantined, "damaged")
        elif not quarantined and here and entry.device.get("name") != here:
            yield Verified(key, kernel, "left", f"it is of {entry.device.get('name')}: verify it on one")
        elif entry.basis == "measured":
            yield _verified(store, kernel, entry, options, quarantined)


def _verified(store: Store, path: Path, entry: Entry, options: RefineOptions, quarantined: bool) -> Verified:
    key = entry.key.digest()
    try:
        kernel = load_kernel(path, entry.key.entry, *of_key(path, entry.key.given))
        candidate = _candidate(entry)
        if candidate is None:
            why = "its candidate cannot be read by this version, so that it was not tested"
            return _dropped(store, key, path, True, why) if quarantined else Verified(key, path, "left", why)
        judged = judge_candidate(kernel, candidate, options, Asked(timed=True, untrusted=quarantined))
    except FsrError as fault:
        return Verified(key, path, "left", fault.what)
    why = objection(judged)
    if why.startswith("left: "):
        return Verified(key, path, "left", why.removeprefix("left: "))
    if why:
        return _dropped(store, key, path, quarantined, why)
    renewed = renewal(kernel, candidate, judged, entry)
    store.publish(renewed)
    if quarantined:
        let_go(store, key)
    elif renewed.key != entry.key and renewed.key.hardware == entry.key.hardware:
        store.remove([key])
    speedup = renewed.evidence["best"]["speedup"]
    return Verified(key, path, "served", f"{speedup:.2f} times as fast, measured here")


def gpu_name(device: str) -> str:
    """The name of the GPU that is meant, '' where that is the host device. Raises UsageError, MissingToolError."""
    chosen = resolve_device(parse_device(device))
    backend = backend_named(chosen.kind)
    return backend.gpus()[chosen.index].name if backend.numbered else ""


def _candidate(entry: Entry) -> Candidate | None:
    try:
        return candidate_from_json(dict(entry.candidate))
    except (KeyError, TypeError, ValueError):
        return None


def objection(judged: Judged) -> str:
    """Why a winner is not served on this judgement; empty when it is. 'left: ' begins it where nothing was decided."""
    judgement = judged.judgement
    if judgement.status != "passed":
        if judgement.basis != "measured" and judgement.outcome in UNDECIDED:
            return f"left: the host device cannot tell: {judgement.outcome} at {judgement.stage}"
        return f"{judgement.outcome} at {judgement.stage}"
    verdict: Any = judgement.verdict
    if judgement.basis != "measured":
        return "left: its tests pass, but without a GPU nothing can be measured"
    if not isinstance(verdict, dict) or verdict.get("kind") == "ambiguous":
        return "left: the timing was ambiguous; try again"
    return "" if verdict["kind"] == "faster" else f"not faster here: {verdict['speedup']:.2f} times"


def renewal(kernel: Kernel, candidate: Candidate, judged: Judged, entry: Entry) -> Entry:
    """The winner as this machine stores it: own key, own files, own evidence."""
    judgement, device = judged.judgement, device_fields(judged.device, judged.spec)
    verdict: Any = judgement.verdict
    handed = published(kernel, candidate)
    best = dict(entry.evidence.get("best") or {}) | {
        "speedup": verdict["speedup"], "speedup_ci95": list(verdict["ci95"]), "plan": to_json(handed.plan),
    }  # fmt: skip
    evidence: dict[str, Any] = {
        "status": "improved", "entry": judgement.entry, "basis": judgement.basis, "device": dict(judgement.device),
        "best": best, "tests": dict(judgement.tests),
    }  # fmt: skip
    files = render_files(kernel, handed, evidence, f"{kernel.file.path.stem}.fsr")
    stored: Any = to_json(candidate)
    return Entry(cache_key(kernel, judged.spec, device), judgement.basis, device, files, evidence, stored)


def _dropped(store: Store, key: str, kernel: Path, quarantined: bool, why: str) -> Verified:
    if quarantined:
        let_go(store, key)
    else:
        store.remove([key])
    return Verified(key, kernel, "removed", why)
