"""``features``: what holds a kernel back, recorded on the host device and predicted for a target."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.backends.select import backend_for
from fsr.computation.computation import to_record
from fsr.computation.printing import lines, words
from fsr.contract.model import concrete_launches
from fsr.errors import MissingToolError
from fsr.evaluation.clock import record_and_predict, recorded_features, static_features
from fsr.evaluation.jobs import lifted
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.features.instructions import mix
from fsr.features.lifted import main_launch
from fsr.features.schema import DEFINITIONS, GROUPS, Binary, Features
from fsr.hardware.gpus import target_of
from fsr.identity import to_json
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.prediction.words import explain, line_remarks
from fsr.records import Candidate, FaultKind, Image, Json
from fsr.runs.kernel import kernel_of
from fsr.runs.options import RefineOptions


def features(options: RefineOptions) -> tuple[str, dict[str, Json]]:
    """(text for a person, object for a script) of ``options.kernel`` at its first timed sizes. Raises FsrError."""
    kernel = kernel_of(options)
    target = target_of(options.target)
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", options.target, options.seed, str(kernel.folder))
    session = Session(spec)
    try:
        case, data = session.timed()[0]
        prediction, profile = record_and_predict(session, session.baseline, kernel.baseline.plan, case, data)
        found = static_features(session, kernel.baseline.plan, session.baseline.resources)
        found = found.merged(lifted(kernel.baseline)).merged(recorded_features(prediction, profile, options.target))
        found = found.merged(Features(binary=_instruction_mix(session, kernel.baseline))).quoting(kernel.unit.text)
    finally:
        session.close()
    faults = [fault for fault in profile.faults if fault.kind is not FaultKind.UNSET]
    if faults:
        raise session.original.error(case, faults[0])
    sizes = ", ".join(f"{name} = {value}" for name, value in case.sizes)
    text = f"{kernel.contract.entry} at {sizes}\n" + explain(prediction, target, kernel.unit.text, kernel.unit.where)
    lifting = lift(kernel.contract, kernel.baseline)
    text += "\n\n" + "\n".join([*computed(lifting), *known(found)])
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
        "features": to_json(found),
        "computation": computation_record(lifting),
    }


def computed(lifting: Lifting) -> Iterator[str]:
    """What the kernel computes, a line and a sentence a statement; or why that is not known."""
    yield "computes:"
    if lifting.computation is None:
        yield f"  not known as a whole: {lifting.why}" if lifting.alone else f"  not known: {lifting.why}"
        for one in lifting.alone:
            assert one.computation is not None
            yield f"  {one.kernel}, for itself:"
            yield from (f"    {line}" for line in lines(one.computation))
        return
    for line, sentence in zip(lines(lifting.computation), words(lifting.computation), strict=True):
        yield from (f"  {line}", f"      {sentence}")
    at = "; ".join(", ".join(f"{name} = {value}" for name, value in sizes.items()) or "its only size"
                   for sizes in lifting.checked)  # fmt: skip
    yield f"  (watched on the CPU; answers as the kernel did in {lifting.cases} tests, at {at})"


def computation_record(lifting: Lifting) -> dict[str, Json]:
    """The same for a script."""
    found = lifting.computation
    return {
        "lifted": found is not None,
        "why": lifting.why,
        "seconds": round(lifting.seconds, 3),
        "lines": [] if found is None else list(lines(found)),
        "words": [] if found is None else list(words(found)),
        "checked": [dict(sizes) for sizes in lifting.checked],
        "cases": lifting.cases,
        "record": None if found is None else to_record(found),
        "launches": {one.kernel: to_record(one.computation) for one in lifting.alone},
    }


def _instruction_mix(session: Session, candidate: Candidate) -> Binary | None:
    """Of the largest launch, for the session's target; None without its compiler or a disassembler."""
    owner = backend_for(session.spec.target)
    case, data = session.timed()[0]
    main = main_launch(concrete_launches(candidate.plan, session.contract, case.size_map(), data.scalars))
    if owner is None or main is None:
        return None
    try:
        image = owner.toolchain(session.spec.target).compile(candidate)
    except MissingToolError:
        return None
    sass = owner.disassembled(image) if isinstance(image, Image) else None
    return mix(sass, image.symbols[main.entry]) if sass is not None and isinstance(image, Image) else None


def known(features: Features) -> Iterator[str]:
    """A line for every feature that is known, by group, with its unit and what it says."""
    for group in GROUPS:
        record = getattr(features, group)
        told = [(d, getattr(record, d.name)) for d in DEFINITIONS if d.group == group and record is not None]
        lines = [f"  {d.name:<18} {_value(v):>12} {'' if d.unit == 'name' else d.unit:<12} {d.meaning}"
                 for d, v in told if v is not None]  # fmt: skip
        if lines:
            yield from (f"{group}:", *lines)


def _value(value: int | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
