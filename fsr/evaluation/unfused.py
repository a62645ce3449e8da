"""The original built without fused products: whether a product leaves its type's range on its way into a sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.backends.protocol import Array, Device, DeviceFault, can_judge
from fsr.evaluation.compiling import run_toolchain, settled
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.testing import Runnable, run_once
from fsr.records import Case, Image
from fsr.testgen.values import CaseData

UNFUSED_S = 10.0  # one answer
_FLAG = "--fmad=false"


@dataclass
class Unfused:
    """Of one session's original, built when first asked for."""

    spec: SessionSpec
    device: Device

    def answer(self, case: Case, data: CaseData, blocks: tuple[int, ...] = ()) -> Mapping[str, Array] | None:
        """What it gives on a case; ``blocks``: what only these give. None where it cannot be built, or fails."""
        if self._image is None:
            return None
        what = Runnable(self.device, self._image, self.spec.baseline.plan, self.spec.contract, blocks=blocks)
        try:
            return run_once(what, case, data, 0, UNFUSED_S)
        except DeviceFault as fault:
            if fault.fatal and can_judge(self.device):  # it cost the process
                raise
            return None

    @cached_property
    def _image(self) -> Image | None:
        original = self.spec.baseline
        plain = replace(original, plan=replace(original.plan, flags=(*original.plan.flags, _FLAG)))
        built = run_toolchain(self.spec).compile(settled(self.spec, plain))
        return built if isinstance(built, Image) else None
