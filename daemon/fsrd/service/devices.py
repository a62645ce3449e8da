"""Which devices runs may have: looked up in a process of its own, so that the service opens no driver and no Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from fsr.errors import FsrError, MissingToolError

LOOK_S = 120.0


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one run at a time. device: 'cuda:1' or 'host', a name of its own for one of a cluster. hardware: what
    a winner of it holds for. stack: its driver and compiler, in words. ray: the cluster that it is of, as for --ray,
    which gives a run any of its GPUs of that type; '' for this machine."""

    device: str
    hardware: str
    stack: str = ""
    ray: str = ""

    @property
    def run_device(self) -> str:
        """What a run on it is given as its device."""
        return self.device if not self.ray else "cuda" if "#" in self.ray else "host"


def slots_of(device: str, target: str, ray: str | None = None) -> tuple[Slot, ...]:
    """The slots that ``--device``, ``--target`` and ``--ray`` stand for. Raises MissingToolError when there is no such
    device, or no cluster answers."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fsrd.service.devices", device, target, ray or ""], capture_output=True, text=True,
            timeout=LOOK_S, check=True,
        )  # fmt: skip
        return tuple(Slot(**row) for row in json.loads(done.stdout))
    except (subprocess.SubprocessError, OSError, ValueError) as fault:
        last = str(getattr(fault, "stderr", "") or fault).strip().splitlines()[-1:]
        raise MissingToolError(
            f"no device: {' '.join(last)}", expected="device = 'auto', 'cuda:N' or 'host'",
            where="daemon.toml, [run]", fix="fsr doctor says what works here",
        ) from None  # fmt: skip


def look(device: str, target: str, ray: str = "") -> list[dict[str, str]]:
    """The same in this process, as fields of Slot. Raises FsrError."""
    if ray:
        return _look_at_cluster(device, target, ray)
    from fsr.backends.select import backend_named, parse_device, resolve_device  # heavy, and the service needs none

    wanted = parse_device(device)
    found = resolve_device(wanted)
    backend = backend_named(found.kind)
    if not backend.numbered:
        stack = backend.toolchain(target).version
        return [{"device": str(found), "hardware": f"host, predicted for {target}", "stack": stack}]
    gpus = backend.gpus()
    chosen = range(len(gpus)) if wanted.kind == "auto" else [found.index]
    driver = backend.driver_version()
    return [
        {"device": f"{found.kind}:{index}", "hardware": gpus[index].name,
         "stack": f"driver {driver}, {backend.toolchain(gpus[index].model[1]).version}"}
        for index in chosen
    ]  # fmt: skip


def _look_at_cluster(device: str, target: str, address: str) -> list[dict[str, str]]:
    """A slot for every GPU whose type Ray knows; without any, one on the CPUs."""
    from fsr.workers.cluster import ClusterName
    from fsr.workers.ray import cluster_gpus

    cluster = ClusterName.parse(address)
    found = {} if device == "host" else cluster_gpus(cluster)
    slots = [
        {"device": f"{cluster.address} {name} {index}", "hardware": name, "ray": f"{cluster.address}#{name}"}
        for name, count in found.items() if name and cluster.gpu_type in ("", name)
        for index in range(count)
    ]  # fmt: skip
    if slots:
        return slots
    if device not in ("auto", "host") or cluster.gpu_type:
        raise MissingToolError(
            f"the Ray cluster at {cluster.address} has no GPU of a type that Ray knows", where="daemon.toml, [run]",
            fix="`ray status` says what it has; device = 'host' uses its CPUs",
        )  # fmt: skip
    return [{"device": f"{cluster.address} host", "hardware": f"host, predicted for {target}", "ray": cluster.address}]


if __name__ == "__main__":
    try:
        print(json.dumps(look(*sys.argv[1:])))
    except FsrError as fault:
        sys.exit(fault.what)
