"""The original in float64: what its answers are compared with, and how far it may itself be off."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fsr.backends.protocol import Array, Device, DeviceFault, can_judge
from fsr.backends.select import recording_backend
from fsr.contract.model import Contract
from fsr.errors import MissingToolError
from fsr.evaluation.compiling import run_toolchain, with_layouts_asserted
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.testing import Runnable, run_once
from fsr.records import Candidate, Case, FaultKind, Image
from fsr.testgen import cases as case_lists
from fsr.testgen.fitting import elements
from fsr.testgen.reference import widened_data
from fsr.testgen.values import CaseData, build

Built = tuple[Candidate, Image] | None
WIDE_S = 10.0  # one answer: cases for which it is asked are small, or run on a GPU
LESS = 4  # elements of what is asked for after one that took as long
SOON_S = 0.1  # an answer of the host device, where there is a GPU: a hundred cases and more ask for two each


@dataclass(slots=True)
class Widened:
    """The widened forms of one session's original, built when first asked for. ``device``: the session's; ``host``:
    opens the host device; ``smoke``: the case that tells whether a form ends."""

    spec: SessionSpec
    device: Device
    host: Callable[[], Device]
    smoke: Callable[[], Case]
    _on_host: dict[int, Built] = field(default_factory=dict)
    _on_device: dict[int, Built] = field(default_factory=dict)
    _standing: dict[int, bool] = field(default_factory=dict)
    _room: float = math.inf  # elements of a case beyond which the host device takes too long, as far as is known
    _soon: float = math.inf  # and from which on a GPU is asked instead

    def answer(
        self, case: Case, data: CaseData, *, noisy: int, blocks: tuple[int, ...] = ()
    ) -> Mapping[str, Array] | None:
        """What it gives on a case; ``noisy``: how many times the noise of :func:`fsr.testgen.widen.noisy_candidate`, 0
        for none. Small cases run on the host device, others on the session's own if that is a GPU, as are those of the
        size of one that took long; ``blocks``: what only these give. None where there is no such form, or it fails."""
        size = elements(self.spec.contract, case.size_map())
        small = size < self._soon and size <= min(case_lists.HOST_ELEMENTS, self._room)
        if small or not self._on_gpu(noisy):
            before, built, began = self._room, self.on_host(noisy=noisy), time.monotonic()
            found = self._ran(built, self.host(), case, data, blocks)
            if time.monotonic() - began > SOON_S:
                self._soon = min(self._soon, size)
            if found is not None or self._room == before or blocks or not self._on_gpu(noisy):
                return found
        return self._ran(self.on_device(noisy=noisy), self.device, case, data)

    def _on_gpu(self, noisy: int) -> bool:
        return can_judge(self.device) and self._stands(noisy)

    def on_host(self, *, noisy: int) -> Built:
        """The form for the host device; None where there is none."""
        if noisy not in self._on_host:
            self._on_host[noisy] = _built_on_host(self.spec, noisy=noisy)
        return self._on_host[noisy]

    def on_device(self, *, noisy: int = 0) -> Built:
        """The form for the session's own device, a GPU; None where there is none."""
        if noisy not in self._on_device:
            widened = _form(self.spec, noisy=noisy) if self.spec.contract.reference is None else None
            image = run_toolchain(self.spec).compile(widened) if widened is not None else None
            found = (widened, image) if widened is not None and isinstance(image, Image) else None
            self._on_device[noisy] = found
        return self._on_device[noisy]

    def _stands(self, noisy: int) -> bool:
        """Whether it ends on the host device, which a fault does not cost: on a GPU it would cost the process."""
        if noisy not in self._standing:
            case = self.smoke()
            data = widened_data(build(self.spec.contract, case))
            self._standing[noisy] = self._ran(self.on_host(noisy=noisy), self.host(), case, data) is not None
        return self._standing[noisy]

    def _ran(
        self, built: Built, device: Device, case: Case, data: CaseData, blocks: tuple[int, ...] = ()
    ) -> Mapping[str, Array] | None:
        size = elements(self.spec.contract, case.size_map())
        if built is None or (size > self._room and not can_judge(device)):
            return None
        what = Runnable(device, built[1], built[0].plan, in_float64(self.spec.contract), blocks=blocks)
        try:
            return run_once(what, case, data, 0, WIDE_S)
        except DeviceFault as fault:  # it needs more shared memory, say
            if fault.fault.kind is FaultKind.HANG:  # there is no time for more of that
                self._room = min(self._room, size // LESS)
            if fault.fatal and can_judge(device):
                raise
            return None


def in_float64(contract: Contract) -> Contract:
    """The contract with floating arguments as float64."""
    floats = ("float16", "bfloat16", "float32")
    args = tuple(replace(a, dtype="float64") if a.dtype in floats else a for a in contract.args)
    return replace(contract, args=args)


def _form(spec: SessionSpec, *, noisy: int) -> Candidate | None:
    from fsr.testgen.widen import noisy_candidate, widen_candidate  # loads the grammar

    found = noisy_candidate(spec.baseline, noisy) if noisy else widen_candidate(spec.baseline)
    return None if found is None else with_layouts_asserted(found, spec.contract, widened=True)


def _built_on_host(spec: SessionSpec, *, noisy: int) -> Built:
    widened = _form(spec, noisy=noisy)
    try:
        image = recording_backend().toolchain("").compile(widened) if widened is not None else None
    except MissingToolError:
        return None
    return (widened, image) if widened is not None and isinstance(image, Image) else None
