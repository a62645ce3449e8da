"""Which of the processes that NVML lists are the service's own.

In a container NVML lists processes under the numbers of the machine, its own among them (pid_namespaces(7)). There the
service's are told by when they come: a number that NVML lists newly belongs to a process of ours that opened the driver
a moment ago, where there is one that no other number was found for. Somebody else's process that comes within that
moment is taken for ours until it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil

OUTERMOST = "pid:[4026531836]"  # PROC_PID_INIT_INO of Linux (include/linux/proc_ns.h)
COMPUTE = "/dev/nvidia-uvm"  # opened for every context of CUDA, not for NVML
OPENING_S = 20.0  # from opening the driver to a context that NVML lists: seconds, where many GPUs are set up
NEW_S = 2.0  # how long a number that NVML lists is new: the list of own processes is up to date by then


def nested() -> bool:
    """Whether this process may have another number outside."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) != OUTERMOST
    except OSError:
        return False


def computes(pid: int) -> bool:
    """Whether a process of ours has the driver open to compute."""
    with suppress(OSError):  # it ended meanwhile
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                if str(file.readlink()) == COMPUTE:
                    return True
    return False


class Numbering:
    """Tells others' processes from the service's. Not for several threads at once.

    Args, stand-ins in tests: ``nested`` as above; exists, whether a number is that of a process here; computes, as
    above."""

    def __init__(
        self, *, is_nested: bool | None = None, exists: Callable[[int], bool] = psutil.pid_exists,
        computing: Callable[[int], bool] = computes, clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self._nested = nested() if is_nested is None else is_nested
        self._exists, self._computes, self._clock = exists, computing, clock
        self._differs = False  # NVML's numbers are not those of here
        self._looked: set[int] = set()
        self._opened: dict[int, float] = {}
        self._listed: dict[tuple[int, int], float] = {}
        self._ours: dict[tuple[int, int], int] = {}

    def others(self, gpu: int, listed: Collection[int], own: Collection[int]) -> set[int]:
        """Those of the listed processes of a GPU that are not the service's. ``own``: its processes, by their numbers
        here."""
        came = self._clock() if gpu in self._looked else float("-inf")  # who was there before the service is not new
        self._looked.add(gpu)
        self._differs = self._differs or (self._nested and not all(map(self._exists, listed)))
        if not self._differs:
            return set(listed) - set(own)
        now = self._clock()
        self._opened = {pid: self._opened.get(pid, now) for pid in own if self._computes(pid)}
        here = {(gpu, pid) for pid in listed}
        self._listed = {key: at for key, at in self._listed.items() if key[0] != gpu or key in here}
        self._ours = {key: pid for key, pid in self._ours.items() if key[0] != gpu or key in here}
        taken = set(self._ours.values())
        waiting = [pid for pid, at in self._opened.items() if now - at <= OPENING_S and pid not in taken]
        new = [key for key in sorted(here - set(self._ours)) if now - self._listed.setdefault(key, came) <= NEW_S]
        self._ours |= dict(zip(new, waiting, strict=False))
        return {pid for _, pid in here - set(self._ours)}
