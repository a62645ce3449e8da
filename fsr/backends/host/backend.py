"""The host device as a backend: verifies anywhere, predicts for a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsr.backends.backend import Counted, Finding, Gpu, Limits, ToolReport
from fsr.backends.protocol import Buffer, Device
from fsr.backends.toolchain import Toolchain
from fsr.records import Basis, ConcreteLaunch, Image


class HostBackend:
    """See :class:`fsr.backends.backend.Backend`."""

    name = "host"
    numbered = False
    basis = Basis.PREDICTED
    confined = True
    records = True
    sanitizes = False
    # A fiber switches in well under a microsecond, so that 2**18 threads pass a barrier in a second or two.
    limits = Limits(elements=1 << 14, threads=1 << 18, thread_s=10e-6, least_s=2.0)

    def gpus(self) -> tuple[Gpu, ...]:
        """None: there is one CPU."""
        return ()

    def driver_version(self) -> str | None:
        """None: a CPU has no driver."""
        return None

    def require(self, index: int) -> None:
        """It is always there."""

    def open(self, index: int) -> Device:
        """The CPU."""
        from fsr.backends.host.device import open_host_device

        return open_host_device()

    def compiles(self, target: str) -> bool:
        """It builds for no GPU."""
        return False

    def toolchain(self, target: str) -> Toolchain:
        """The C++ compiler; the target takes part in the prediction only."""
        from fsr.backends.host.compiler import HostToolchain

        return HostToolchain()

    def sanitize(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int
    ) -> list[ToolReport]:
        """None: the recorder looks at every access."""
        return []

    def count(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int) -> Counted:
        """None: the recorder tells more."""
        return Counted(note="the host device has no counters", never=True)

    def disassembled(self, image: Image) -> str | None:
        """None: the CPU's code says nothing of a GPU's."""
        return None

    def findings(self) -> Iterator[Finding]:
        """The compiler and a kernel on the CPU."""
        from fsr.backends.host.probe import host_device

        yield host_device()


BACKEND = HostBackend()
