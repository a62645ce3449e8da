"""What a backend is: one folder beside this file, found by its name, that says all that others need to know of it.

``fsr/backends/NAME/backend.py`` holds ``BACKEND``, an object of this protocol. It imports nothing heavy: what opens,
compiles or probes is imported when asked for. A backend may also have ``present.py`` (standard library alone):
``numbered(index)`` gives a device's driver version and UUID without opening anything, which is how ``fsr lookup``
knows the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fsr.backends.protocol import Buffer, Device
from fsr.backends.toolchain import Toolchain
from fsr.features.schema import Counters
from fsr.records import Basis, ConcreteLaunch, Fault, Image


@dataclass(frozen=True, slots=True)
class Gpu:
    """``uuid`` as its driver and CUDA_VISIBLE_DEVICES write it ('GPU-…'); ``arch`` for example 'sm_90'."""

    uuid: str
    name: str
    arch: str

    @property
    def model(self) -> tuple[str, str]:
        """What must be equal for times to be compared."""
        return self.name, self.arch


@dataclass(frozen=True, slots=True)
class Limits:
    """What a test may cost on a device: ``elements`` of all buffers of a case; ``threads`` launched for a case (None:
    any number) and the seconds allowed for each; ``least_s``: no time-out is below this."""

    elements: int
    threads: int | None = None
    thread_s: float = 0.0
    least_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ToolReport:
    """What one tool said. ``available`` False: it could not run here, and ``note`` says why; the plan is then
    neither cleared nor blamed."""

    tool: str
    available: bool
    faults: tuple[Fault, ...] = ()
    note: str = ""

    @property
    def silent(self) -> bool:
        """The tool ran to the end and found nothing."""
        return self.available and not self.faults


@dataclass(frozen=True, slots=True)
class Counted:
    """Hardware counters of one run of a plan; None, with a ``note``, where they could not be read. ``never``: nor
    could those of any other plan here."""

    counters: Counters | None = None
    note: str = ""
    never: bool = False


OK, MISSING, BROKEN, NOTE = "ok", "missing", "broken", "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of ``fsr doctor``. ``state``: 'ok'; 'missing' (can be installed); 'broken' (there, and fails when used);
    'note' (not needed for what this machine can do). ``device``: what can run kernels, when this is ok."""

    what: str
    state: str
    detail: str
    fix: str = ""
    device: str = ""


class Backend(Protocol):
    """A kind of device and the compiler for it."""

    name: str  # the folder's, and the device's: 'cuda' of 'cuda:1'
    numbered: bool  # whether there can be several: 'cuda:N'
    basis: Basis  # whether times are measured or predicted for a target
    confined: bool  # whether candidates run on this machine's CPU, where the sandbox must hold them
    records: bool  # whether its devices are RecordingDevices, whose images are instrumented builds
    sanitizes: bool  # whether :meth:`sanitize` has tools
    limits: Limits

    def gpus(self) -> tuple[Gpu, ...]:
        """The numbered devices that this process can see, in their order, without opening one; none where there are
        no such, or where devices have no numbers."""

    def driver_version(self) -> str | None:
        """The version of their driver, asked cheaply; None without one."""

    def require(self, index: int) -> None:
        """Raise MissingToolError unless device ``index`` can be there."""

    def open(self, index: int) -> Device:
        """Device ``index`` for this process. Raises MissingToolError."""

    def compiles(self, target: str) -> bool:
        """Whether :meth:`toolchain` builds for this architecture ('sm_90')."""

    def toolchain(self, target: str) -> Toolchain:
        """The compiler whose images its devices execute. Raises MissingToolError."""

    def sanitize(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int
    ) -> list[ToolReport]:
        """What every tool that watches a run says of one on device ``index``."""

    def count(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int) -> Counted:
        """The hardware counters of one run on device ``index``, on cold caches."""

    def disassembled(self, image: Image) -> str | None:
        """The machine code of an image as text; None where there is no disassembler."""

    def findings(self) -> Iterator[Finding]:
        """What works here of all that it needs, each line the result of trying it."""
