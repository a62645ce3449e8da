"""Finding out more about candidates that are timed on a GPU: accesses and causes from a recording on an idle core, and
hardware counters. Nothing here decides over a candidate; what cannot be found is told in a note."""

from __future__ import annotations

import atexit
import math
from dataclasses import dataclass

from fsr.backends.protocol import DeviceFault, RecordingDevice, can_record
from fsr.backends.select import open_device, parse_device, recording_backend
from fsr.contract.model import concrete_launches
from fsr.errors import MissingToolError
from fsr.evaluation.capacity import buffer_bytes
from fsr.evaluation.clock import recorded_features
from fsr.evaluation.compiling import settled
from fsr.evaluation.session import session_of
from fsr.evaluation.spec import Enriched, EnrichRequest, SessionSpec
from fsr.features.instructions import mix
from fsr.features.lifted import main_launch, text_features
from fsr.features.schema import Binary, Features
from fsr.hardware.gpus import closest_target
from fsr.prediction.compiled import as_compiled
from fsr.prediction.locals import with_locals_told
from fsr.prediction.predict import predict
from fsr.records import Case, Image
from fsr.sandbox.confine import support
from fsr.source.parse import parse_kernels
from fsr.testgen.cases import timed_cases
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build

RECORD_S = 20.0
MOST_RECORDED_BYTES = 512 << 20  # an idle core each: several of them at once must fit the machine's memory
MOST_COUNTED_LAUNCHES = 64  # each is run several times under ncu, which takes about a second
MOST_COUNTED_BYTES = 512 << 20  # written to a file for the process that ncu watches


@dataclass(slots=True)
class _Desk:
    """What this process keeps between recordings: the host device, and the timed inputs of the run at hand."""

    device: RecordingDevice | None = None
    run: str = ""
    timed: tuple[Case, CaseData] | None = None

    def recorder(self) -> RecordingDevice:
        if self.device is None:
            opened = open_device(parse_device(recording_backend().name))
            assert can_record(opened)
            self.device = opened
        return self.device

    def inputs(self, spec: SessionSpec) -> tuple[Case, CaseData]:
        if self.timed is None or self.run != spec.digest():
            case = timed_cases(spec.contract, spec.seed, 1)[0]
            self.run, self.timed = spec.digest(), (case, build(spec.contract, case, 3))
        return self.timed

    def close(self) -> None:
        if self.device is not None:
            self.device.close()
            self.device = None


DESK = _Desk()
atexit.register(DESK.close)


def record_task(request: EnrichRequest) -> Enriched:
    """Record a candidate at the first timed sizes on this process's own host device, and predict what holds it back;
    with the text's features and, where there is a disassembler, the instruction mix."""
    if request.untrusted and not support().complete:
        return Enriched(note=f"candidates of models are not recorded: nothing contains them ({support().missing})")
    try:
        return _recorded(request)
    except MissingToolError as missing:
        return Enriched(note=f"candidates are not recorded beside the GPU: {missing.what}", never=True)
    except DeviceFault:  # a CPU has other limits than the GPU: no fault of the candidate
        return Enriched()


def _recorded(request: EnrichRequest) -> Enriched:
    spec, candidate = request.spec, request.candidate
    if min(buffer_bytes(spec.contract, sizes) for sizes in spec.contract.timed_sizes()[:1]) > MOST_RECORDED_BYTES:
        return Enriched(note="candidates are not recorded beside the GPU: the timed sizes are too large", never=True)
    told = with_locals_told(settled(spec, candidate))
    built = recording_backend().toolchain(spec.target).compile(told, instrumented=True)
    text = Features(text_features(parse_kernels(candidate.source)), _instruction_mix(request))
    if not isinstance(built, Image):
        return Enriched(text)
    case, data = DESK.inputs(spec)
    launches, buffers = place(spec.contract, candidate.plan, case, data, some=True)
    profile = DESK.recorder().record(built, launches, buffers, timeout_s=RECORD_S)
    profile = as_compiled(profile, candidate.source, candidate.plan)
    gpu, footprint = closest_target(spec.target), float(sum(b.array.nbytes for b in buffers))
    prediction = predict(profile, request.binaries.resources, gpu, footprint)
    if not math.isfinite(prediction.time_ns):
        return Enriched(text)
    return Enriched(text.merged(recorded_features(prediction, profile, spec.target)).quoting(candidate.source))


def _instruction_mix(request: EnrichRequest) -> Binary | None:
    """Of the largest launch; None without a disassembler."""
    spec, plan = request.spec, request.candidate.plan
    sass = spec.backend.disassembled(request.binaries.run)
    case, data = DESK.inputs(spec)
    main = main_launch(concrete_launches(plan, spec.contract, case.size_map(), data.scalars))
    return None if sass is None or main is None else mix(sass, request.binaries.run.symbols[main.entry])


def counters_task(request: EnrichRequest) -> Enriched:
    """Read the hardware counters of one run of a candidate at the first timed sizes, on the session's device."""
    spec = request.spec
    session = session_of(spec)
    case, data = session.timed()[0]
    launches, buffers = place(spec.contract, request.candidate.plan, case, data)
    if len(launches) > MOST_COUNTED_LAUNCHES:
        return Enriched(note="hardware counters are not read: the plan has too many launches")
    if sum(b.array.nbytes for b in buffers) > MOST_COUNTED_BYTES:
        return Enriched(note="hardware counters are not read: the timed sizes are too large", never=True)
    index = parse_device(spec.device).index
    counted = spec.backend.count(request.binaries.run, launches, buffers, index)
    return Enriched(Features(counters=counted.counters), counted.note, counted.never)
