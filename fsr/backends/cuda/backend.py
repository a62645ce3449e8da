"""NVIDIA GPUs as a backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsr.backends.backend import Counted, Finding, Gpu, Limits, ToolReport
from fsr.backends.cuda.gpus import driver_gpus
from fsr.backends.cuda.present import asked, present
from fsr.backends.protocol import Buffer, Device
from fsr.backends.toolchain import Toolchain
from fsr.errors import MissingToolError
from fsr.records import Basis, ConcreteLaunch, Image


class CudaBackend:
    """See :class:`fsr.backends.backend.Backend`."""

    name = "cuda"
    numbered = True
    basis = Basis.MEASURED
    confined = False
    records = False
    sanitizes = True
    limits = Limits(elements=1 << 18)

    def gpus(self) -> tuple[Gpu, ...]:
        """From the driver, in CUDA's order."""
        return driver_gpus()

    def driver_version(self) -> str | None:
        """From the kernel driver's files, else nvidia-smi."""
        found = present() or asked()
        return found[0] if found else None

    def require(self, index: int) -> None:
        """Raises MissingToolError when the driver shows no GPU of this number."""
        count = len(driver_gpus())
        if index >= count:
            raise MissingToolError(
                f"there is no device cuda:{index}",
                expected=f"one of cuda:0 to cuda:{count - 1}" if count else "an NVIDIA GPU with its driver",
                where="--device",
                fix="choose another" if count else "--device host verifies on the CPU and predicts times",
            )

    def open(self, index: int) -> Device:
        """Through PyCUDA."""
        from fsr.backends.cuda.device import CudaDevice

        return CudaDevice(index)

    def compiles(self, target: str) -> bool:
        """NVIDIA's architectures."""
        return target.startswith("sm_")

    def toolchain(self, target: str) -> Toolchain:
        """NVRTC, else nvcc."""
        from fsr.backends.cuda.compiler import cuda_toolchain

        return cuda_toolchain(target)

    def sanitize(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int
    ) -> list[ToolReport]:
        """compute-sanitizer's tools."""
        from fsr.backends.cuda.sanitizer import sanitize

        return sanitize(image, launches, buffers, index=index)

    def count(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int) -> Counted:
        """Nsight Compute's."""
        from fsr.backends.cuda.counters import read_counters

        return read_counters(image, launches, buffers, index)

    def disassembled(self, image: Image) -> str | None:
        """By nvdisasm."""
        from fsr.backends.cuda.disassembly import disassembled

        return disassembled(image)

    def findings(self) -> Iterator[Finding]:
        """Driver, GPUs, compilers, PyCUDA and NVIDIA's tools."""
        from fsr.backends.cuda.probe import findings

        yield from findings()


BACKEND = CudaBackend()
