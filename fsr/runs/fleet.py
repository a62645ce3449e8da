"""Which devices a run uses, and the workers on them: every GPU of one model here, a cluster's, or host devices.

Each device worker of several sees its own GPU only and calls it cuda:0. Times are compared between them, so a GPU
of another model, or one that somebody else is timing on, is left out; the final is paired, on a single GPU.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fsr.backends.seats import Seat
from fsr.backends.select import DeviceSpec, backend_named, parse_device, recording_backend, resolve_device
from fsr.errors import FsrError, MissingToolError, UsageError
from fsr.evaluation.spec import SessionSpec
from fsr.hardware.gpus import target_of
from fsr.runs.kernel import Kernel
from fsr.runs.options import RefineOptions
from fsr.workers.protocol import Completion, Task, Workers
from fsr.workers.select import compilers, open_workers

LOCAL_RAY = "local"
SEAT_TIMEOUT_S = 60.0  # a Ray actor starts its interpreter first
HOST_WORKER_BYTES = 4 << 30
MOST_HOST_WORKERS = 8
TICK_S = 0.2
TOLD = "told.json"  # in the shared folder: where workers say at which sizes their time goes


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running workers; ``device``: what every device worker calls its own, 'cuda:N' or 'host'; ``target``: the
    architecture to compile and predict for; ``notes``: what is worth telling about the choice; ``leased``: the
    GPUs of this machine that a run takes in turn with others of its process; ``remote``: workers have no folder of the
    kernel but their working directory; ``kept``: a folder of this machine that they share, "" where there is none."""

    workers: Workers
    device: str
    target: str
    notes: tuple[str, ...] = ()
    leased: tuple[str, ...] = ()
    remote: bool = False
    kept: str = ""

    def spec(self, kernel: Kernel, options: RefineOptions) -> SessionSpec:
        """What its workers need to know to judge candidates of a kernel."""
        folder, inputs = "." if self.remote else str(kernel.folder), kernel.contract.inputs
        if inputs is not None:
            inputs = replace(inputs, folder="." if self.remote else inputs.folder, kept=self.kept)
        return SessionSpec(
            replace(kernel.contract, inputs=inputs), kernel.baseline, self.device, self.target, options.seed, folder,
            budget_s=options.budget_s, leased=bool(self.leased), told=str(Path(self.kept, TOLD)) if self.kept else "",
        )  # fmt: skip


def open_fleet(
    options: RefineOptions, compile_workers: int | None, *, single: bool = False, modules: Path | None = None
) -> AbstractContextManager[Fleet]:
    """The workers that ``options`` ask for, ended at the end of the block. ``single``: one device is enough.
    ``modules``: the folder whose Python files go to the machines of a cluster, for a contract that names a reference
    there; all else that workers need of a kernel is in their tasks.

    Raises UsageError for a device that cannot be, MissingToolError for one that is not there."""
    wanted = parse_device(options.device)
    if options.ray in (None, LOCAL_RAY):
        return _with_a_folder(_on_this_machine(wanted, options, compile_workers, single=single))
    return _on_a_cluster(wanted, options, compile_workers, single=single, modules=modules)


@contextmanager
def _with_a_folder(fleet: AbstractContextManager[Fleet]) -> Iterator[Fleet]:
    with tempfile.TemporaryDirectory(prefix="fsr-made-", ignore_cleanup_errors=True) as kept, fleet as found:
        yield replace(found, kept=kept)


@contextmanager
def _on_this_machine(
    wanted: DeviceSpec, options: RefineOptions, compile_workers: int | None, *, single: bool
) -> Iterator[Fleet]:
    device = resolve_device(wanted)
    backend = backend_named(device.kind)
    if not backend.numbered:
        target_of(options.target)  # raises for one that nothing is known of, before anything is started
        with open_workers(compile_workers, options.ray, (), 1 if single else host_workers()) as workers:
            yield Fleet(workers, str(device), options.target)
        return
    gpus = backend.gpus()
    chosen = [gpu for gpu in gpus if gpu.model == gpus[0].model]
    if single or wanted.kind != "auto":
        chosen = [gpus[device.index]]
    if len(chosen) == 1 and options.ray is None:
        with open_workers(compile_workers, None) as workers:
            yield Fleet(workers, str(device), chosen[0].arch, leased=() if single else (chosen[0].uuid,))
        return
    with open_workers(compile_workers, options.ray, [gpu.uuid for gpu in chosen]) as workers:
        yield _seated(workers, wanted, options, leased=not single)


@contextmanager
def _on_a_cluster(
    wanted: DeviceSpec, options: RefineOptions, compile_workers: int | None, *, single: bool, modules: Path | None
) -> Iterator[Fleet]:
    from fsr.workers.cluster import ClusterName
    from fsr.workers.ray import cluster_workers

    if wanted.index:
        raise UsageError(
            f"the device {wanted} on a Ray cluster", expected="auto, host or cuda: Ray says which GPU",
            where="--device", fix="leave --device out",
        )  # fmt: skip
    assert options.ray is not None
    cluster = ClusterName.parse(options.ray)
    if compile_workers is not None:
        compilers(compile_workers)
    gpu = None if wanted.kind == "auto" else backend_named(wanted.kind).numbered
    if cluster.gpu_type and gpu is False:
        raise UsageError(
            f"the device {wanted} on {cluster.gpu_type} of a cluster", expected="a GPU's type where GPUs are used",
            where="--ray", fix=f"--ray {cluster.address}, or leave --device out",
        )  # fmt: skip
    count = 1 if single or wanted.kind != "auto" else None
    with cluster_workers(cluster, compile_workers, count, gpu=gpu, modules=modules) as workers:
        yield replace(_seated(workers, wanted, options), remote=modules is not None)


def host_workers() -> int:
    """How many host devices one machine carries: executing and recording a candidate take about three times as long
    as compiling it, and a worker keeps the timed sizes' inputs and results in memory. Predictions do not disturb one
    another."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min((3 * cores + 2) // 4, _available_bytes() // HOST_WORKER_BYTES, MOST_HOST_WORKERS))


def _available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory that can be had without swapping, files in the cache included."""
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _on_host(workers: Workers, options: RefineOptions) -> Fleet:
    target_of(options.target)  # raises for one that nothing is known of
    return Fleet(workers, recording_backend().name, options.target)


def _seated(workers: Workers, wanted: DeviceSpec, options: RefineOptions, *, leased: bool = False) -> Fleet:
    """The fleet of device workers that may each have a GPU: asks all, keeps those that can be compared. ``leased``:
    they are this machine's, so that runs of this process take turns on them instead of leaving out what one uses."""
    if wanted.kind != "auto" and not backend_named(wanted.kind).numbered:
        return _on_host(workers, options)
    seats = _seats(workers, own=f"process {os.getpid()}" if leased else "")
    valid = {index: seat for index, seat in seats.items() if isinstance(seat, Seat)}
    found = {index: seat.gpu for index, seat in valid.items() if seat.gpu is not None}
    if not found and wanted.kind == "auto" and len(valid) == len(seats):
        return _on_host(workers, options)
    if not found:
        why = _unfit(next(iter(seats.values())), ("", ""), {})
        raise MissingToolError(
            f"no device worker found a GPU: {why}",
            expected="an NVIDIA GPU with its driver",
            where="--device",
            fix="fsr doctor, on the machine with the GPU, says what is missing",
        )
    free = [i for i in found if not valid[i].holder]
    first = (free or list(found))[0]
    lead = found[first]
    kept: dict[str, int] = {}
    notes = []
    for index, seat in seats.items():
        why = _unfit(seat, lead.model, kept) if free or index != min(found) else ""
        if why:
            notes.append(f"GPU {index} is left out: {why}")
            workers.leave_out("device", index)
        else:
            kept[found[index].uuid] = index
    if len(kept) > 1:
        notes.insert(0, f"searched on {len(kept)} GPUs: {lead.name}")
    device = str(DeviceSpec(valid[first].backend))
    return Fleet(workers, device, lead.arch, tuple(notes), tuple(kept) if leased else ())


def _unfit(seat: Seat | str, model: tuple[str, str], kept: dict[str, int]) -> str:
    """Why a device worker takes no part, in words; '' when it does."""
    if isinstance(seat, str):
        return seat
    if seat.gpu is None:
        return f"the driver of {seat.node} shows none"
    if seat.gpu.model != model:
        return f"{seat.gpu.name} is not the model of the first"
    if seat.gpu.uuid in kept:
        return f"it is GPU {kept[seat.gpu.uuid]} again"
    return f"in use by {seat.holder}" if seat.holder else ""


def _seats(workers: Workers, own: str) -> dict[int, Seat | str]:
    """What every device worker found, or its fault in words; a GPU held by ``own`` counts as free. Those that have no
    place after SEAT_TIMEOUT_S are not waited for where others have one."""
    asked = {
        workers.submit("device", Task("fsr.backends.seats:seat_task", None, SEAT_TIMEOUT_S, worker=index)): index
        for index in range(workers.size("device"))
    }
    seats: dict[int, Seat | str] = {}
    until = time.monotonic() + SEAT_TIMEOUT_S
    while len(seats) < len(asked):
        if seats and time.monotonic() > until:
            late = f"Ray had no room for it in {SEAT_TIMEOUT_S:g} s"
            for index in set(asked.values()) - set(seats):
                seats[index] = late
            break
        for done in workers.wait(TICK_S):
            seat = _seat(done)
            taken = isinstance(seat, Seat) and bool(own) and seat.holder == own
            seats[asked[done.ticket]] = replace(seat, holder="") if taken else seat  # type: ignore[type-var]
    return dict(sorted(seats.items()))


def _seat(done: Completion) -> Seat | str:
    if isinstance(done.result, Seat):
        return done.result
    error = getattr(done.result, "error", None)
    return error.what if isinstance(error, FsrError) else str(done.result.detail).strip().splitlines()[-1]
