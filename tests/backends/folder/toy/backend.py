"""Two toy GPUs that exist on paper only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsr.backends.backend import OK, Finding, Gpu, Limits, ToolReport
from fsr.backends.protocol import Buffer, Device
from fsr.backends.toolchain import Toolchain
from fsr.errors import MissingToolError
from fsr.records import Basis, ConcreteLaunch, Image

GPUS = (Gpu("TOY-0", "Toy 1", "toy_1"), Gpu("TOY-1", "Toy 1", "toy_1"))


class ToyBackend:
    """See fsr.backends.backend.Backend."""

    name = "toy"
    numbered = True
    basis = Basis.MEASURED
    confined = False
    records = False
    sanitizes = False
    limits = Limits(elements=1 << 10)

    def gpus(self) -> tuple[Gpu, ...]:
        return GPUS

    def driver_version(self) -> str | None:
        return "1.0"

    def require(self, index: int) -> None:
        if index >= len(GPUS):
            raise MissingToolError(f"there is no device toy:{index}", expected="toy:0 or toy:1", where="--device")

    def open(self, index: int) -> Device:
        raise MissingToolError("toys do not open", fix="buy a real one")

    def compiles(self, target: str) -> bool:
        return target.startswith("toy_")

    def toolchain(self, target: str) -> Toolchain:
        raise MissingToolError("toys have no compiler")

    def sanitize(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int
    ) -> list[ToolReport]:
        return []

    def findings(self) -> Iterator[Finding]:
        yield Finding("toy", OK, "two of them", device="toy:0")


BACKEND = ToyBackend()
