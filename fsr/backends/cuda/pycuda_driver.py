"""The driver protocol on PyCUDA. The only file that imports it."""

from __future__ import annotations

import ctypes
import gc
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

from fsr.backends.cuda.driver import ATTRIBUTES, DriverError, Event, Function, Module
from fsr.backends.protocol import Array
from fsr.errors import MissingToolError
from fsr.records import Dim3


def load_pycuda() -> Any:
    """pycuda.driver with the driver initialised. Raises MissingToolError with what to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own imports; nothing that a user of fsr could act on
            import pycuda.driver as cuda
    except ImportError as error:
        raise MissingToolError(
            f"PyCUDA cannot be imported ({error})",
            expected="PyCUDA and NVIDIA's driver library (libcuda.so.1)",
            fix="pip install 'fsr[cuda]' on a machine with the CUDA toolkit, or use --device host",
        ) from error
    try:
        cuda.init()
    except cuda.Error as error:
        raise MissingToolError(
            f"the NVIDIA driver does not start ({error})",
            expected="a GPU that nvidia-smi lists",
            fix="check nvidia-smi, or use --device host",
        ) from error
    return cuda


class PyCudaDriver:
    """One context on GPU number ``index``. Owned by the thread that made it. Raises MissingToolError."""

    def __init__(self, index: int = 0) -> None:
        cuda = self._cuda = load_pycuda()
        count = cuda.Device.count()
        if not 0 <= index < count:
            raise MissingToolError(
                f"there is no GPU cuda:{index}", expected=f"cuda:0 to cuda:{count - 1}" if count else "a GPU",
                fix="list them with nvidia-smi -L",
            )  # fmt: skip
        device = cuda.Device(index)
        self.name = device.name()
        self.pci_bus_id = device.pci_bus_id()
        self.compute_capability = cast(tuple[int, int], device.compute_capability())
        self.memory_bytes = int(device.total_memory())
        self.attributes: Mapping[str, int] = {
            name: int(device.get_attribute(getattr(cuda.device_attribute, name)))
            for name in ATTRIBUTES
            if hasattr(cuda.device_attribute, name)
        }
        import pycuda

        self.runtime = f"pycuda {pycuda.VERSION_TEXT}, cuda {'.'.join(map(str, cuda.get_version()[:2]))}"
        self._context = device.make_context()
        self._stream = cuda.Stream()
        self._memory: dict[int, Any] = {}

    def alloc(self, size_bytes: int) -> int:
        """See Driver."""
        allocation = self._call(self._cuda.mem_alloc, max(size_bytes, 1))
        address = int(allocation)
        self._memory[address] = allocation
        return address

    def free(self, address: int) -> None:
        """See Driver."""
        self._call(self._memory.pop(address).free)

    def fill(self, address: int, value: int, size_bytes: int) -> None:
        """See Driver."""
        if size_bytes:
            self._call(self._cuda.memset_d8_async, address, value, size_bytes, self._stream)

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        """See Driver."""
        if size_bytes:
            self._call(self._cuda.memcpy_dtod_async, to, source, size_bytes, self._stream)

    def upload(self, to: int, array: Array) -> None:
        """See Driver."""
        if array.nbytes:
            self._call(self._cuda.memcpy_htod, to, _bytes_of(array))

    def download(self, array: Array, source: int) -> None:
        """See Driver."""
        self._call(self._stream.synchronize)
        if array.nbytes:
            self._call(self._cuda.memcpy_dtoh, _bytes_of(array), source)

    def load(self, image: bytes) -> Module:
        """See Driver."""
        return cast(Module, self._call(self._cuda.module_from_buffer, image, refused="image"))

    def function(self, module: Module, symbol: str) -> Function:
        """See Driver."""
        return cast(Function, self._call(cast(Any, module).get_function, symbol, refused="image"))

    def variable(self, module: Module, symbol: str) -> int:
        """See Driver."""
        address, _size = self._call(cast(Any, module).get_global, symbol, refused="image")
        return int(address)

    def function_limits(self, function: Function) -> tuple[int, int]:
        """See Driver."""
        attribute = self._cuda.function_attribute
        read = cast(Any, function).get_attribute
        return int(read(attribute.MAX_THREADS_PER_BLOCK)), int(read(attribute.SHARED_SIZE_BYTES))

    def allow_dynamic_shared(self, function: Function, size_bytes: int) -> None:
        """See Driver."""
        attribute = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call(cast(Any, function).set_attribute, attribute, size_bytes)

    def launch(self, function: Function, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """See Driver."""
        self._call(cast(Any, function)._launch_kernel, grid, block, arguments, shared_bytes, self._stream)

    def event(self) -> Event:
        """See Driver."""
        return cast(Event, self._call(self._cuda.Event))

    def record(self, event: Event) -> None:
        """See Driver."""
        self._call(cast(Any, event).record, self._stream)

    def done(self, event: Event) -> bool:
        """See Driver."""
        return bool(self._call(cast(Any, event).query, refused="crash"))

    def elapsed_ns(self, start: Event, end: Event) -> float:
        """See Driver."""
        return float(self._call(cast(Any, end).time_since, start)) * 1e6

    def synchronize(self) -> None:
        """See Driver."""
        self._call(self._cuda.Context.synchronize, refused="crash")

    def graph(self, queue: Callable[[], None]) -> Callable[[], None] | None:
        """See Driver."""
        from fsr.backends.cuda.graph import capture

        return capture(self._stream.handle, queue)

    def abandon(self) -> None:
        """See Driver. What PyCUDA would free at exit, waiting for the GPU, is given one reference too many."""
        for thing in (self._context, self._stream, *self._memory.values()):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))

    def close(self) -> None:
        """See Driver. Without the pop, PyCUDA aborts the process at exit."""
        for allocation in self._memory.values():
            self._call(allocation.free)
        self._memory.clear()
        del self._stream
        gc.collect()  # events and modules that are still in a cycle belong to the context
        self._cuda.Context.pop()
        del self._context

    def _call(self, function: Callable[..., Any], *arguments: Any, refused: str = "launch") -> Any:
        """Call PyCUDA. An error is 'memory', or 'crash' when the context is lost, else of kind ``refused``."""
        try:
            return function(*arguments)
        except self._cuda.MemoryError as error:
            raise DriverError("memory", str(error)) from error
        except self._cuda.Error as error:
            lost = _sticky_error()
            raise DriverError("crash" if lost else refused, lost or str(error)) from error


def _bytes_of(array: Array) -> Array:
    """The array's bytes as PyCUDA takes them: NumPy types of other packages have no buffer format."""
    return array.reshape(-1).view("uint8")


def _sticky_error() -> str | None:
    """Why the context is lost, in the driver's words; None while it works. PyCUDA's own texts do not name the
    newer codes (an illegal address is 'unknown' to it), so the driver library is asked."""
    library = ctypes.CDLL("libcuda.so.1")
    code = library.cuCtxSynchronize()
    if code == 0:
        return None
    text = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(text))
    return (text.value or b"").decode() or f"CUDA error {code}"
