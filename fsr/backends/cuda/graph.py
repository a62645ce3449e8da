"""CUDA graphs through NVIDIA's bindings, which PyCUDA does not offer. They share PyCUDA's context and stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsr.errors import HarnessError


def capture(stream_handle: int, queue: Callable[[], None]) -> Callable[[], None] | None:
    """Record what ``queue`` puts on the stream; the answer puts all of it there with one call. None without the
    bindings. The graph lives as long as the answer does."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    stream = driver.CUstream(stream_handle)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    _check(driver.cuStreamBeginCapture(stream, mode))
    try:
        queue()
    finally:
        graph = _check(driver.cuStreamEndCapture(stream))
    executable = _check(driver.cuGraphInstantiate(graph, 0))
    _check(driver.cuGraphDestroy(graph))
    return _Graph(driver, executable, stream)


class _Graph:
    def __init__(self, driver: Any, executable: Any, stream: Any) -> None:
        self._driver, self._executable, self._stream = driver, executable, stream

    def __call__(self) -> None:
        _check(self._driver.cuGraphLaunch(self._executable, self._stream))

    def __del__(self) -> None:
        self._driver.cuGraphExecDestroy(self._executable)


def _check(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if int(status):
        raise HarnessError(f"CUDA graph call answered {status}", where="fsr.backends.cuda.graph")
    return values[0] if values else None
