"""How long a candidate takes at the timed sizes: measured on a GPU, predicted on the host device.

Both clocks answer the same question, so that the stages need not know which it is; the basis is in the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from fsr.backends.protocol import AccessProfile, DeviceFault, TimedPrepared, can_time
from fsr.contract.model import concrete_launches
from fsr.emulator.elf import attached_source
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries
from fsr.evaluation.timing import screen
from fsr.features.access import access_features
from fsr.features.lifted import binary_features, launch_features
from fsr.features.schema import Features
from fsr.hardware.gpus import closest_target, target_of
from fsr.prediction.compiled import as_compiled
from fsr.prediction.evidence import bottlenecks
from fsr.prediction.predict import Prediction, predict
from fsr.records import Basis, Case, Fault, FaultKind, Plan, Resources, Timing
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build


@dataclass(frozen=True, slots=True)
class Reading:
    """A timing; ``decided`` when the candidate is clearly slower than the incumbent; ``faults`` that a recording
    found on the way; ``features`` for the archive and the policy."""

    timing: Timing
    decided: bool = False
    faults: tuple[Fault, ...] = ()
    features: Features = field(default_factory=Features)


def read_clock(session: Session, binaries: Binaries, plan: Plan, incumbent_ns: float | None) -> Reading:
    """Time a plan over all timed configurations; several are told as their geometric mean.

    Raises DeviceFault."""
    one = len(session.contract.timed_sizes()) == 1
    readings = []
    for case, data in session.timed():
        if session.spec.predicted:
            with session.original.telling.at(case.sizes):
                readings.append(predicted(session, binaries, plan, case, data))
        else:
            readings.append(measured(session, binaries, plan, case, data, incumbent_ns if one else None))
    features = static_features(session, plan, binaries.resources).merged(readings[0].features)
    faults = _held_against(session, binaries, tuple(f for r in readings for f in r.faults))
    if one:
        decided = readings[0].decided or _clearly_slower(session, readings[0].timing.median_ns, incumbent_ns)
        return replace(readings[0], decided=decided, faults=faults, features=features)
    times = [r.timing.median_ns for r in readings]
    mean = math.exp(float(np.mean(np.log(times)))) if all(times) else 0.0  # a recording that a fault ended has none
    note = f"geometric mean of {len(readings)} configurations"
    timing = Timing(readings[0].timing.basis, mean, (mean,), note, tuple(times))
    return Reading(timing, _clearly_slower(session, mean, incumbent_ns), faults, features)


def _held_against(session: Session, binaries: Binaries, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """The faults without reads of shared memory that was never set, where the original has such reads: whether a result
    depends on them is for the tests to say, each of which runs twice on different memory."""
    if not any(f.kind is FaultKind.UNSET for f in faults):
        return faults
    if session.unset is None and binaries is not session.baseline:
        case, data = session.timed()[0]
        profile = record_and_predict(session, session.baseline, session.spec.baseline.plan, case, data)[1]
        session.unset = any(f.kind is FaultKind.UNSET for f in profile.faults)
    tolerated = binaries is session.baseline or session.unset
    return tuple(f for f in faults if not (tolerated and f.kind is FaultKind.UNSET))


def _clearly_slower(session: Session, time_ns: float, incumbent_ns: float | None) -> bool:
    return incumbent_ns is not None and time_ns > session.spec.policy.decided_at * incumbent_ns


def measured(
    session: Session, binaries: Binaries, plan: Plan, case: Case, data: CaseData, incumbent_ns: float | None
) -> Reading:
    """Time a plan on one case of a device with a clock; ``decided`` when it is clearly slower than ``incumbent_ns``.

    Raises DeviceFault."""
    device = session.device
    assert can_time(device)
    launches, buffers = place(session.contract, plan, case, data)
    with device.prepare(binaries.run, launches, buffers) as prepared:
        prepared.run(session.original.stopwatch.limit_s(case))
        timing, decided = screen(prepared, incumbent_ns, session.spec.policy)
    return Reading(timing, decided)


def predicted(session: Session, binaries: Binaries, plan: Plan, case: Case, data: CaseData | None = None) -> Reading:
    """Record one run on the host device and predict its time on the session's target. Raises DeviceFault, of kind
    'launch' when the target could not launch it."""
    found, profile = record_and_predict(session, binaries, plan, case, data or build(session.contract, case, 3))
    if not math.isfinite(found.time_ns):
        raise DeviceFault(Fault(FaultKind.LAUNCH, f"a block does not fit a multiprocessor of {session.spec.target}"))
    timing = Timing(Basis.PREDICTED, found.time_ns, (found.time_ns,), f"{found.binds} binds")
    return Reading(timing, False, profile.faults, recorded_features(found, profile, session.spec.target))


def record_and_predict(
    session: Session, binaries: Binaries, plan: Plan, case: Case, data: CaseData
) -> tuple[Prediction, AccessProfile]:
    """The recording of one run on the host device, and what it predicts for the session's target."""
    recorder = session.recorder()
    launches, buffers = place(session.contract, plan, case, data, some=True)
    profile = recorder.record(binaries.run, launches, buffers)
    profile = as_compiled(profile, attached_source(binaries.run.data), plan)
    footprint = float(sum(b.array.nbytes for b in buffers))
    return predict(profile, binaries.resources, target_of(session.spec.target), footprint), profile


def recorded_features(prediction: Prediction, profile: AccessProfile, target: str) -> Features:
    """What a recording and its prediction say of a candidate."""
    return Features(access=access_features(profile), bottlenecks=bottlenecks(prediction, target_of(target)))


def static_features(session: Session, plan: Plan, resources: Mapping[str, Resources]) -> Features:
    """What the plan and the compiler's report say, at the first timed sizes."""
    case, data = session.timed()[0]
    launches = concrete_launches(plan, session.contract, case.size_map(), data.scalars)
    gpu = closest_target(session.spec.target)
    return Features(source=launch_features(launches), binary=binary_features(launches, resources, gpu))


def placed(
    session: Session, stack: ExitStack, binaries: Binaries, plan: Plan, case: Case, data: CaseData
) -> TimedPrepared:
    """A plan on a case's data, run once and put back, ready to be timed; freed with the stack. Raises DeviceFault."""
    device = session.device
    assert can_time(device)
    launches, buffers = place(session.contract, plan, case, data)
    prepared = stack.enter_context(device.prepare(binaries.run, launches, buffers))
    prepared.run(max(10.0, session.original.stopwatch.limit_s(case)))
    prepared.reset()
    return prepared
