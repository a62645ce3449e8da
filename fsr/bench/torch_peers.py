"""The side of the torch peers: the reference of a workload, eager and compiled, and what a library has for it.

Timed by the rules of the kernels' side (:meth:`fsr.backends.protocol.TimedPrepared.time_ns`): what is read and written
is restored, the L2 is flushed by writing and then reading twice its size, the run stands between two events, and all of
it is queued behind work that lasts longer than Python takes to queue it, so that only the GPU's time counts. Input sets
rotate; the second and third are copies of the first at addresses of their own.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fsr.bench import exchange
from fsr.bench.agreement import agrees, disagreement
from fsr.errors import MissingToolError, UsageError
from fsr.records import Json

SETS = 3
MIN_FLUSH_BYTES = 128 << 20
SLEEP_MOST_S = 0.05  # of the GPU, for Python to queue a run behind; a run that takes longer to queue shows its gaps
CYCLES_A_SECOND = 2e9
EAGER, COMPILED, AUTOTUNED, LIBRARY = "torch", "compile", "compile-max", "library"


@dataclass(frozen=True, slots=True)
class TorchAsked:
    """``function``: of the file ``references``. folder: what the kernels' side wrote. device: 'cuda:N', or 'cpu' to try
    a reference without a GPU. outputs: names in the contract's order. scalars and sizes: by name."""

    references: Path
    function: str
    folder: Path
    device: str
    outputs: Sequence[str]
    changed: Sequence[str]  # outputs that are read as well
    scalars: Mapping[str, Json]
    sizes: Mapping[str, int]
    l2_bytes: int = 0
    terms: int = 1  # that an output sums


class TorchPeers:
    """Peers are prepared one by one and then timed. Raises MissingToolError without torch."""

    def __init__(self, asked: TorchAsked) -> None:
        self._torch = torch = _import_torch()
        self._asked, self._device = asked, torch.device(asked.device)
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # as the kernels compute
        torch.manual_seed(0)
        arrays = exchange.take(asked.folder / "given")
        types = {name: dtype for name, (dtype, _) in exchange.described(asked.folder / "given").items()}
        first = {name: self._tensor(array, types[name]) for name, array in arrays.items()}
        copies = [{name: tensor.clone() for name, tensor in first.items()} for _ in range(SETS - 1)]
        self._sets = [first, *copies]
        self._pristine = {name: first[name].clone() for name in asked.changed}
        self._calls: dict[str, Callable[..., Any]] = {}
        self._sleep: dict[str, int] = {}
        self._clock = _CudaClock(torch, asked.l2_bytes) if self._device.type == "cuda" else _CpuClock()

    def _tensor(self, array: Any, dtype: str) -> Any:
        torch = self._torch
        if dtype == "bfloat16":
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16).to(self._device)
        if dtype in ("uint16", "uint32", "uint64"):  # torch computes little in these
            array = array.astype(f"int{min(2 * int(dtype[4:]), 64)}")
        return torch.from_numpy(array).to(self._device)

    def versions(self) -> dict[str, Json]:
        """Of torch and what it runs on."""
        torch = self._torch
        cuda = self._device.type == "cuda"
        return {
            "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if cuda else None, "tf32": False,
        }  # fmt: skip

    def prepare(self, peer: str) -> dict[str, Json]:
        """Load or compile a peer, warm it up and compare its answer with the original's: output to how far apart they
        are, and whether it counts. Raises what torch raises."""
        torch = self._torch
        name = f"library_{self._asked.function}" if peer == LIBRARY else self._asked.function
        function = _load(self._asked.references, name)
        call = self._bound(function, self._compiled(function, peer) if peer in (COMPILED, AUTOTUNED) else {})
        with torch.no_grad():
            told = self._compared(call(self._sets[0]))
            for number in range(SETS):  # every set once: nothing is left to be compiled when it is timed
                self._restore(number)
                call(self._sets[number])
            self._clock.wait()
            started = time.perf_counter()
            call(self._sets[0])
            queued_s = time.perf_counter() - started
            self._clock.wait()
            self._restore(0)
        self._sleep[peer] = int(CYCLES_A_SECOND * min(SLEEP_MOST_S, 3 * queued_s + 1e-4))
        if told["agrees"]:
            self._calls[peer] = call
        return told

    def _compiled(self, function: Callable[..., Any], peer: str) -> dict[str, Callable[..., Any]]:
        """What is compiled in its place: functions that are defaults of its parameters, by name, else itself as ''.
        CUDA graphs are left out, which copy inputs that rotate; Python's time is not counted anyway."""
        torch = self._torch
        torch._dynamo.reset()
        mode = "max-autotune-no-cudagraphs" if peer == AUTOTUNED else "default"
        parts = {n: p.default for n, p in inspect.signature(function).parameters.items() if callable(p.default)}
        parts = {n: f for n, f in parts.items() if f is not inspect.Parameter.empty} or {"": function}
        return {n: torch.compile(f, mode=mode, dynamic=False) for n, f in parts.items()}

    def _bound(self, function: Callable[..., Any], compiled: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        """A call on a set of tensors: inputs, scalars and sizes by the names of the function's parameters."""
        wanted = inspect.signature(function).parameters
        every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in wanted.values())
        known: dict[str, Any] = {**self._asked.sizes, **self._asked.scalars}
        plain = {k: v for k, v in known.items() if k in wanted and not every}
        plain |= {name: part for name, part in compiled.items() if name}
        used = compiled.get("", function)

        def call(tensors: Mapping[str, Any]) -> Any:
            return used(**plain | {k: v for k, v in tensors.items() if every or k in wanted})

        return call

    def _compared(self, answer: Any) -> dict[str, Json]:
        names = self._asked.outputs
        parts = answer if isinstance(answer, tuple | list) else (answer,)
        if len(parts) != len(names):
            raise UsageError(
                f"{self._asked.function} returned {len(parts)} tensors", expected=f"those of {', '.join(names)}",
                where=str(self._asked.references),
            )  # fmt: skip
        want = exchange.take(self._asked.folder / "answered")
        types = {name: dtype for name, (dtype, _) in exchange.described(self._asked.folder / "answered").items()}
        terms = self._asked.terms
        apart = {n: disagreement(self._array(t, want[n]), want[n], terms) for n, t in zip(names, parts, strict=True)}
        return {"apart": dict(apart), "agrees": all(agrees(share, types[n]) for n, share in apart.items())}

    def _array(self, tensor: Any, like: Any) -> Any:
        found = tensor.detach().cpu().contiguous()
        if found.dtype == self._torch.bfloat16:
            found = found.float()
        return found.numpy().astype(like.dtype)

    def _restore(self, number: int) -> None:
        for name, tensor in self._pristine.items():
            self._sets[number][name].copy_(tensor)

    def sample(self, number: int) -> dict[str, float]:
        """As :meth:`fsr.bench.kernels.Kernels.sample`, for every peer that was prepared and agrees."""
        names = list(self._calls)
        first = number % max(len(names), 1)
        chosen = number % SETS
        found = {}
        with self._torch.no_grad():
            for name in names[first:] + names[:first]:
                self._restore(chosen)
                found[name] = self._clock.time_ns(partial(self._calls[name], self._sets[chosen]), self._sleep[name])
        return found

    def close(self) -> None:
        """Free everything."""
        self._calls.clear()
        self._sets.clear()


class _CudaClock:
    """Events on the current stream, on cold caches."""

    def __init__(self, torch: Any, l2_bytes: int) -> None:
        self._torch = torch
        count = max(2 * l2_bytes, MIN_FLUSH_BYTES) // 4
        self._written = torch.zeros(count, dtype=torch.float32, device="cuda")
        self._read = torch.zeros(count, dtype=torch.float32, device="cuda")

    def wait(self) -> None:
        self._torch.cuda.synchronize()

    def time_ns(self, call: Callable[[], Any], sleep_cycles: int) -> float:
        torch = self._torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.wait()
        torch.cuda._sleep(sleep_cycles)
        self._written.fill_(1.0)
        self._read.sum()
        start.record()
        kept = call()  # freed after the end is recorded, so that no later allocation waits inside
        end.record()
        self.wait()
        del kept
        return float(start.elapsed_time(end)) * 1e6


class _CpuClock:
    """For references that are tried on a CPU; no benchmark uses it."""

    def wait(self) -> None:
        pass

    def time_ns(self, call: Callable[[], Any], sleep_cycles: int) -> float:
        started = time.perf_counter_ns()
        call()
        return float(time.perf_counter_ns() - started)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingToolError(
            f"torch cannot be imported ({error})", expected="PyTorch, for the peers torch and compile",
            fix="pip install 'fsr[torch]', or leave them out of --peers",
        ) from error  # fmt: skip
    return torch


def _load(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"fsr_references_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, name)
    return function
