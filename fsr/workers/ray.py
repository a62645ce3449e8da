"""Workers on Ray: one actor a device, actors for compiling, on this machine or on a cluster.

The same supervisor as for local processes decides who gets what; only starting, asking and killing differ. Each
actor is a process of its own; one that dies or overruns is killed and started anew, and costs its task only.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fsr.errors import MissingToolError, UsageError
from fsr.sandbox.environment import clean_environment
from fsr.workers.child import call
from fsr.workers.cluster import ClusterName, copy_modules, gpus_by_type, require_type
from fsr.workers.memory import keep_freed_memory
from fsr.workers.protocol import Pool, Task, WorkerFault
from fsr.workers.supervisor import Supervisor, Worker

VISIBLE = "CUDA_VISIBLE_DEVICES"
ANSWER_S = 3.0
QUIET = {"log_to_driver": False, "configure_logging": False}


class Executor:
    """The actor's body: runs tasks one after the other."""

    def __init__(self) -> None:
        keep_freed_memory()

    def run(self, task: Task) -> tuple[Any, bool]:
        """(result, usable) of a task, as :func:`fsr.workers.child.call` gives it."""
        return call(task)

    def pid(self) -> int:
        """The actor's process id on its node."""
        return os.getpid()


class RayWorker:
    """One actor, and the reference to the answer it owes."""

    def __init__(self, ray: Any, pool: Pool, index: int, *, gpu: bool, gpu_type: str = "") -> None:
        self._ray = ray
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_concurrency": 1}
        if gpu:
            options |= {"num_gpus": 1, "accelerator_type": gpu_type or None}
        else:
            options["runtime_env"] = {"env_vars": {"FSR_WORKER": f"{pool}:{index}"}}
            options["scheduling_strategy"] = "SPREAD"  # asking for no CPU, they would crowd on one node
        self.actor = ray.remote(Executor).options(**options).remote()
        self._pid_answer = self.actor.pid.remote()
        self._ready = False
        self.answer: Any = None

    @property
    def pid(self) -> int | None:
        """The actor's process id; None while it starts, or when it died."""
        if not self.ready(10.0):
            return None
        try:
            return int(self._ray.get(self._pid_answer))
        except self._ray.exceptions.RayError:
            return None

    def ready(self, timeout_s: float = 0.0) -> bool:
        """Whether a node has given it what it asks for and it runs there; also when it died since."""
        self._ready = self._ready or bool(self._ray.wait([self._pid_answer], timeout=timeout_s)[0])
        return self._ready

    def send(self, task: Task) -> None:
        """Start a task."""
        self.answer = self.actor.run.remote(task)

    def receive(self) -> tuple[Any, bool]:
        """The answer that is ready, or the fault of an actor that died."""
        try:
            result, usable = self._ray.get(self.answer)
        except self._ray.exceptions.RayTaskError as fault:
            return WorkerFault("raised", f"the result does not pickle: {fault}"), True
        except self._ray.exceptions.RayError as fault:
            return WorkerFault("crashed", f"the worker's process ended: {str(fault).splitlines()[0]}"), False
        return result, usable

    def release(self) -> None:
        """Nothing: Ray ends an actor's process only by killing it."""

    def kill(self) -> None:
        """End the actor's process at once."""
        with contextlib.suppress(Exception):  # an actor that is already gone
            self._ray.kill(self.actor, no_restart=True)


class RayBackend:
    """Starts actors on a Ray that this process connects to (and, if it started it, stops).

    ``cluster``: None starts Ray here, with the GPUs whose UUIDs are given. ``gpu``: whether a device worker is given
    a GPU of its own; None for where the cluster has any. ``modules``: the folder whose Python files every worker finds
    in its working directory (Ray's runtime environment)."""

    def __init__(
        self, cluster: ClusterName | None, gpus: Sequence[str] = (), *, gpu: bool | None = None,
        modules: Path | None = None,
    ) -> None:  # fmt: skip
        ray = _import_ray()
        self._ray, self._started = ray, not ray.is_initialized()
        self._gpu_type = cluster.gpu_type if cluster is not None else ""
        if self._started:
            try:
                if cluster is None:
                    with _environment_of_ray(gpus):
                        ray.init(address="local", include_dashboard=False, num_gpus=len(gpus), **QUIET)
                else:
                    _connect(ray, cluster.address, modules)
            except (OSError, RuntimeError, ValueError) as fault:
                address = cluster.address if cluster is not None else "local"
                raise UsageError(
                    f"no Ray cluster answers at {address!r}: {str(fault).partition(chr(10))[0]}",
                    expected="'local', 'auto' or the address of a running cluster",
                    where="--ray",
                    fix="start one with `ray start --head`, or leave --ray out",
                ) from None
        self._gpu = bool(self.gpus()) if gpu is None else gpu

    def cpus(self) -> int:
        """How many CPUs the cluster has."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def gpus(self) -> dict[str, int]:
        """How many GPUs of each type it has."""
        return gpus_by_type(self._ray.nodes())

    def start(self, pool: Pool, index: int) -> RayWorker:
        """A new actor; it may still be starting when this returns."""
        return RayWorker(self._ray, pool, index, gpu=self._gpu and pool == "device", gpu_type=self._gpu_type)

    def poll(self, busy: list[Worker], timeout_s: float) -> list[tuple[Worker, Any, bool]]:
        """Answers and deaths among the busy actors."""
        waiting = {w.answer: w for w in busy if isinstance(w, RayWorker)}
        ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=timeout_s)
        if ready:  # take along what finished in the same moment
            ready, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
        return [(waiting[answer], *waiting[answer].receive()) for answer in ready]

    def close(self) -> None:
        """Disconnect; a Ray that was started here stops."""
        if self._started:
            self._ray.shutdown()


def ray_workers(compile_workers: int, device_workers: int, gpus: Sequence[str] = ()) -> Supervisor:
    """Workers on a Ray that is started here; enter it as a context manager to start them.

    ``gpus``: UUIDs, one a device worker; none given leaves the device workers without. Raises MissingToolError
    without Ray."""
    backend = RayBackend(None, gpus, gpu=bool(gpus))
    return Supervisor(backend, {"compile": compile_workers, "device": device_workers})


def cluster_workers(
    cluster: ClusterName, compile_workers: int | None, device_workers: int | None, *, gpu: bool | None,
    modules: Path | None = None,
) -> Supervisor:  # fmt: skip
    """Workers on a running cluster; enter it as a context manager to start them.

    ``gpu``: whether every device worker is given a GPU, None for where there are any. ``device_workers``: None for one
    a GPU of the type that is meant, or one for two CPUs where none is used. ``compile_workers``: None for one a CPU of
    the cluster, or this run's share of them where its device workers leave GPUs to others. ``modules``: as for
    RayBackend. Raises MissingToolError without Ray or a GPU that was asked for, UsageError when no cluster answers."""
    backend = RayBackend(cluster, gpu=gpu, modules=modules)
    found = {} if gpu is False else backend.gpus()
    try:
        require_type(cluster, found)
        if gpu and not found:
            raise MissingToolError(
                f"the Ray cluster at {cluster.address!r} has no GPU", expected="a node started with GPUs",
                where="--ray", fix="--device host, or add a node with GPUs",
            )  # fmt: skip
    except MissingToolError:
        backend.close()
        raise
    cpus, every = backend.cpus(), sum(found.values())
    devices = device_workers or (found[cluster.gpu_type] if cluster.gpu_type else every) or max(1, cpus // 2)
    share = cpus * min(devices, every) // every if every else cpus
    sizes: dict[Pool, int] = {"compile": compile_workers or max(1, share), "device": devices}
    return Supervisor(backend, sizes)


def cluster_gpus(cluster: ClusterName) -> dict[str, int]:
    """How many GPUs of each type a running cluster has. Raises MissingToolError without Ray, UsageError when no cluster
    answers."""
    backend = RayBackend(cluster, gpu=False)
    try:
        return backend.gpus()
    finally:
        backend.close()


def _connect(ray: Any, address: str, modules: Path | None) -> None:
    _require_answer(address)
    with tempfile.TemporaryDirectory(prefix="fsr-modules-") as place:  # connecting sends what it holds
        files = {"working_dir": str(copy_modules(modules, Path(place)))} if modules is not None else {}
        ray.init(address=address, runtime_env=files, **QUIET)


@contextlib.contextmanager
def _environment_of_ray(gpus: Sequence[str]) -> Iterator[None]:
    """The environment that a Ray started now hands to its workers: no secrets, and these GPUs to share out."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    hidden = set(os.environ) - set(clean_environment(os.environ))
    before = {name: os.environ.get(name) for name in (*hidden, VISIBLE)}
    for name in hidden:
        del os.environ[name]
    if gpus:
        os.environ[VISIBLE] = ",".join(gpus)
    try:
        yield
    finally:
        os.environ.pop(VISIBLE, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})


def _require_answer(address: str) -> None:
    """Raises OSError or ValueError where nobody listens: Ray itself would try for a minute."""
    if address == "auto":
        return
    match = re.fullmatch(r"(?:ray://)?([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", address, re.ASCII)
    if match is None or int(match[2]) > 65535:
        raise ValueError("it is no address")
    socket.create_connection((match[1].strip("[]"), int(match[2])), ANSWER_S).close()


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingToolError(
            "Ray is not installed", expected="the package ray", where="--ray", fix="pip install 'fsr[ray]'"
        ) from None
    return ray
