"""Which devices runs may have: looked up in a process of its own, so that the service opens no driver."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from fsr.errors import FsrError, MissingToolError

LOOK_S = 120.0


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one run at a time. device: 'cuda:1' or 'host'. hardware: what a winner of it holds for. stack: its
    driver and compiler, in words."""

    device: str
    hardware: str
    stack: str = ""


def slots_of(device: str, target: str) -> tuple[Slot, ...]:
    """The slots that ``--device`` and ``--target`` stand for. Raises MissingToolError when there is no such device."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fsrd.service.devices", device, target], capture_output=True, text=True,
            timeout=LOOK_S, check=True,
        )  # fmt: skip
        return tuple(Slot(**row) for row in json.loads(done.stdout))
    except (subprocess.SubprocessError, OSError, ValueError) as fault:
        last = str(getattr(fault, "stderr", "") or fault).strip().splitlines()[-1:]
        raise MissingToolError(
            f"no device: {' '.join(last)}", expected="device = 'auto', 'cuda:N' or 'host'",
            where="daemon.toml, [run]", fix="fsr doctor says what works here",
        ) from None  # fmt: skip


def look(device: str, target: str) -> list[dict[str, str]]:
    """The same in this process, as fields of Slot. Raises FsrError."""
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


if __name__ == "__main__":
    try:
        print(json.dumps(look(sys.argv[1], sys.argv[2])))
    except FsrError as fault:
        sys.exit(fault.what)
