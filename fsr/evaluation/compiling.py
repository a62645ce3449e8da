"""The first two stages, which touch no device: the static guard and the compilers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from fsr.backends.select import backend_for
from fsr.backends.toolchain import Toolchain
from fsr.contract.model import Contract
from fsr.contract.passing import plan_misfit
from fsr.errors import MissingToolError, SourceError
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.guard.check import guard
from fsr.guard.settled import settled_pair
from fsr.prediction.locals import with_locals_told
from fsr.records import Candidate, CompileFailure, Fault, ParameterBlock, Resources
from fsr.source.entry import function_name
from fsr.source.file import KernelFile
from fsr.source.folding import as_handed_out, blocks_of, folded, layout_asserted, with_first_statement

COMPILE_TIMEOUT_S = 60.0


def run_toolchain(spec: SessionSpec) -> Toolchain:
    """The toolchain whose images the session's device executes."""
    return spec.backend.toolchain(spec.target)


def settled(spec: SessionSpec, candidate: Candidate) -> Candidate:
    """What is compiled of a candidate that the guard has passed, for whichever device."""
    return settled_pair(candidate, spec.baseline, spec.target)[0]


def build(spec: SessionSpec, candidate: Candidate) -> Binaries | CompileFailure | Fault:
    """Guard and compile a candidate. A Fault is the guard's refusal, a CompileFailure the compiler's, or says which
    argument of a launch is not what its kernel takes.

    For the host device the target's compiler runs too, where it is installed: what it refuses is refused, and
    its registers, spills and shared memory feed the prediction."""
    started, given = time.monotonic(), candidate
    if candidate != spec.baseline:
        refused = guard(candidate, spec.baseline, spec.target)
        if refused is not None:
            return refused
    candidate = settled(spec, candidate)
    if why := _unfit(spec, candidate):
        return CompileFailure(f"the launch does not fit its kernel: {why}")
    candidate, blocks = as_given_out(spec, given, candidate)
    if given == spec.baseline:
        candidate = with_layouts_asserted(candidate, spec.contract)
    resources: Mapping[str, Resources] = {}
    if spec.predicted:
        checked = _target_resources(spec, candidate)
        if isinstance(checked, CompileFailure):
            return checked
        resources = checked
    told = with_locals_told(candidate) if spec.backend.records else candidate
    image = run_toolchain(spec).compile(told, instrumented=spec.backend.records, timeout_s=COMPILE_TIMEOUT_S)
    if isinstance(image, CompileFailure):
        return image
    image = replace(image, blocks=blocks)
    seconds = time.monotonic() - started
    return Binaries(replace(image, log=image.log[-2000:]), resources or image.resources, seconds)


def as_given_out(
    spec: SessionSpec, candidate: Candidate, settled_: Candidate
) -> tuple[Candidate, Mapping[str, ParameterBlock]]:
    """What is compiled of a candidate whose kernels take structures, and where launches pass the members: with the
    parameters that it is handed out with, so that what is tested and timed is what its user gets."""
    contract = spec.contract
    kernels = as_handed_out(candidate, contract.plan, contract.entry, contract.structures)
    if not kernels:
        return settled_, {}
    text = folded(candidate.source, kernels, checked=True)
    whole = settled(replace(spec, baseline=replace(spec.baseline, source=folded(spec.baseline.source, kernels))),
                    replace(candidate, source=text))  # fmt: skip
    return whole, blocks_of(candidate.plan, kernels)


def with_layouts_asserted(candidate: Candidate, contract: Contract, *, widened: bool = False) -> Candidate:
    """The original with the compiler asked whether the structures of its buffers lie as they were read. Candidates
    may read the same bytes as they like. ``widened``: in its form with float64."""
    source = candidate.source
    for argument in contract.structured():
        entry = next((e.entry for e in contract.plan.launches if argument.name in e.args), contract.entry)
        assert argument.layout is not None
        layout = argument.layout.widened() if widened else argument.layout
        places = {f.path: f.offset for f in layout.fields}
        told = layout_asserted(layout.type, layout.bytes, None if widened else layout.alignment, places)
        source = with_first_statement(source, function_name(entry).rpartition("::")[2], told)
    return replace(candidate, source=source)


def _unfit(spec: SessionSpec, candidate: Candidate) -> str:
    """Why a launch does not fit its kernel's head, which only some devices notice; '' too where it cannot be read."""
    try:
        return plan_misfit(KernelFile.from_text(candidate.source), candidate.plan, spec.contract.args)
    except SourceError:
        return ""


def _target_resources(spec: SessionSpec, candidate: Candidate) -> Mapping[str, Resources] | CompileFailure:
    owner = backend_for(spec.target)
    if owner is None:
        return {}
    try:
        image = owner.toolchain(spec.target).compile(candidate, timeout_s=COMPILE_TIMEOUT_S)
    except MissingToolError:
        return {}
    return image if isinstance(image, CompileFailure) else image.resources
