"""A run that takes as long as it is told and a machine that says what a test wants: the boundaries of the service."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fsr.settings import Settings
from fsrd.config import Config, WatchedFolder
from fsrd.service.devices import Slot
from fsrd.service.service import Service

KERNEL = "__global__ void k(float *x) { x[0] = 1.0f; }\n"

# Speaks the protocol of fsrd.running.child. What it does stands in the kernel's first line: '// work 0.2',
# '// work 0.2 unchanged', '// fail for good', '// fail twice' (settled by the second time), '// fail', '// die',
# '// deaf' (does not hear pause).
SCRIPT = """
import json, os, select, sys, time
order = json.loads(sys.stdin.readline())
def tell(kind, **fields): print(json.dumps({"kind": kind, **fields}), flush=True)
def state(phase): tell("state", phase=phase, entry="k", elapsed_s=1.0, budget_s=9.0, told=3, rejected={}, speedup=1.5,
                       best="a move", rate=1.0)
kernel = order["options"]["kernel"]
tell("run", name=order["run"] or f"run-of-{os.path.basename(kernel)}")
words = open(kernel).readline().split()[1:] or ["work", "0.05"]
if words == ["die"]: sys.exit("no memory left")
if words[0] == "fail":
    tell("fault", error="the kernel is wrong", retry=words[1:] in ([], ["twice"]), once=words[1:] == ["twice"])
    sys.exit()
left, paused, deaf = float(words[1]), False, words[0] == "deaf"
while left > 0:
    began = time.monotonic()
    if select.select([sys.stdin], [], [], 0.05)[0]:
        line = sys.stdin.readline()
        if not line: os._exit(70)
        paused = {"pause": not deaf, "go on": False}.get(line.strip(), paused)
    left -= 0 if paused else min(time.monotonic() - began, 0.06)  # what a busy machine takes is no work
    state("paused" if paused else "search")
if words[2:] == ["unchanged"]:
    tell("result", result={"status": "unchanged", "why": "none is faster", "run": "u", "basis": "predicted",
         "output": None, "best": None})
    sys.exit()
os.makedirs(os.path.dirname(order["options"]["output"]), exist_ok=True)
open(order["options"]["output"], "w").write("winner")
json.dump({"run": "r"}, open(order["options"]["output"].removesuffix(".cu") + ".json", "w"))
tell("result", result={"status": "improved", "why": "", "run": "r", "basis": "predicted",
     "output": order["options"]["output"], "best": {"speedup": 2.0}})
"""
COMMAND = (sys.executable, "-c", SCRIPT)


@dataclass
class FakeSensors:
    """A machine as a test wants it. users: GPU to who uses it."""

    users: dict[int, str] = field(default_factory=dict)
    battery: bool = False
    at: datetime = datetime(2026, 1, 31, 12, 0)

    def gpu_users(self, gpu: int, own: Collection[int]) -> str:
        return self.users.get(gpu, "")

    def on_battery(self) -> bool:
        return self.battery

    def own_processes(self) -> set[int]:
        return {1}

    def now(self) -> datetime:
        return self.at


def kernel(folder: Path, name: str, does: str = "work 0.05") -> Path:
    path = folder / f"{name}.cu"
    path.write_text(f"// {does}\n{KERNEL}")
    return path


def service_of(folder: Path, config: Config | None = None, **more: object) -> Service:
    """A service, not yet started, that watches ``folder``/kernels and has two GPUs of one model."""
    (folder / "kernels").mkdir(exist_ok=True)
    home = folder / "home"
    config = config or Config(folder=(WatchedFolder(path=str(folder / "kernels")),))
    slots = more.pop("slots", (Slot("cuda:0", "H200"), Slot("cuda:1", "H200")))
    given = {"sensors": FakeSensors(), "command": COMMAND, **more}
    return Service(Settings(str(home), str(home / "cache.db")), config, slots, **given)  # type: ignore[arg-type]


def eventually(true: Callable[[], object], seconds: float = 120.0) -> bool:
    """Whether it becomes true in time."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if true():
            return True
        time.sleep(0.02)
    return bool(true())
