"""``features``: what holds a kernel back, recorded on the host device and predicted for a target."""

from __future__ import annotations

from fsr.evaluation.clock import record_and_predict
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.hardware.gpus import target_of
from fsr.identity import to_json
from fsr.prediction.words import explain, line_remarks
from fsr.records import Json
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions


def features(options: RefineOptions) -> tuple[str, dict[str, Json]]:
    """(text for a person, object for a script) of ``options.kernel`` at its first timed sizes. Raises FsrError."""
    kernel = load_kernel(options.kernel, options.entry)
    target = target_of(options.target)
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", options.target, options.seed, str(kernel.folder))
    session = Session(spec)
    try:
        case, data = session.timed()[0]
        prediction, profile = record_and_predict(session, session.baseline, kernel.baseline.plan, case, data)
    finally:
        session.close()
    if profile.faults:
        raise session.baseline_error(case, profile.faults[0])
    sizes = ", ".join(f"{name} = {value}" for name, value in case.sizes)
    text = f"{kernel.contract.entry} at {sizes}\n" + explain(prediction, target, kernel.unit.text, kernel.unit.where)
    remarks: list[Json] = [
        {"where": kernel.unit.where(r.line), "weight": round(r.weight, 4), "words": r.words}
        for launch in prediction.launches
        for r in line_remarks(launch)
    ]
    return text, {
        "entry": kernel.contract.entry,
        "basis": "predicted",
        "target": to_json({"name": target.name, "arch": options.target}),
        "sizes": dict(case.sizes),
        "time_ns": prediction.time_ns,
        "binds": prediction.binds,
        "parts_ns": dict(prediction.parts),
        "lines": remarks,
        "resources": to_json(session.baseline.resources),
    }
