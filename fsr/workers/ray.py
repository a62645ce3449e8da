"""Workers on Ray: one actor a device, actors for compiling, on this machine or on a cluster.

The same supervisor as for local processes decides who gets what; only starting, asking and killing differ. Each
actor is a process of its own; one that dies or overruns is killed and started anew, and costs its task only.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from fsr.errors import MissingToolError, UsageError
from fsr.workers.child import call
from fsr.workers.local import clean_environment
from fsr.workers.protocol import Pool, Task, WorkerFault
from fsr.workers.supervisor import Supervisor, Worker


class Executor:
    """The actor's body: runs tasks one after the other."""

    def run(self, task: Task) -> tuple[Any, bool]:
        """(result, usable) of a task, as :func:`fsr.workers.child.call` gives it."""
        return call(task)

    def pid(self) -> int:
        """The actor's process id on its node."""
        return os.getpid()


class RayWorker:
    """One actor, and the reference to the answer it owes."""

    def __init__(self, ray: Any, pool: Pool, index: int, gpus: float) -> None:
        self._ray = ray
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_concurrency": 1}
        if pool == "device" and gpus:
            options["num_gpus"] = gpus
        else:
            options["runtime_env"] = {"env_vars": {"FSR_WORKER": f"{pool}:{index}"}}
        self.actor = ray.remote(Executor).options(**options).remote()
        self._pid_answer = self.actor.pid.remote()
        self.answer: Any = None

    @property
    def pid(self) -> int | None:
        """The actor's process id; None while it starts, or when it died."""
        ready, _ = self._ray.wait([self._pid_answer], timeout=10)
        if not ready:
            return None
        try:
            return int(self._ray.get(self._pid_answer))
        except self._ray.exceptions.RayError:
            return None

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
    """Starts actors on a Ray that this process connects to (and, if it started it, stops)."""

    def __init__(self, address: str, gpus: float) -> None:
        ray = _import_ray()
        self._ray, self._gpus, self._started = ray, gpus, False
        if ray.is_initialized():
            return
        try:
            if address == "local":
                os.environ.setdefault("RAY_AUTH_MODE", "disabled")
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                hidden = set(os.environ) - set(clean_environment(os.environ))
                secrets = {name: os.environ.pop(name) for name in hidden}
                try:
                    ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
                finally:
                    os.environ.update(secrets)
            else:
                ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as fault:
            raise UsageError(
                f"no Ray cluster answers at {address!r}: {str(fault).splitlines()[0]}",
                expected="'local', 'auto' or the address of a running cluster",
                where="--ray",
                fix="start one with `ray start --head`, or leave --ray out",
            ) from None
        self._started = True

    def start(self, pool: Pool, index: int) -> RayWorker:
        """A new actor; it may still be starting when this returns."""
        return RayWorker(self._ray, pool, index, self._gpus)

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


def ray_workers(address: str, compile_workers: int, device_workers: int, gpus: float = 0) -> Supervisor:
    """Workers on Ray; enter it as a context manager to start them.

    ``address``: 'local' starts Ray here, 'auto' or 'host:port' joins a cluster. ``gpus``: of each device worker.
    Raises MissingToolError without Ray, UsageError when no cluster answers."""
    return Supervisor(RayBackend(address, gpus), {"compile": compile_workers, "device": device_workers})


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingToolError(
            "Ray is not installed", expected="the package ray", where="--ray", fix="pip install 'fsr[ray]'"
        ) from None
    return ray
