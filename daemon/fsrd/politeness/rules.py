"""What the owner of a machine wishes, as the configuration says it."""

from __future__ import annotations

from fsrd.strict import Strict


class PoliteTable(Strict, frozen=True):
    """``[polite]``. gpu_idle: run only while nobody else uses the GPU. idle_s: for how long it must have been idle.
    quiet_hours: like '09:00-17:30', local time, in which nothing runs. daily_budget: like '4h', for all runs of a day.
    battery: run on battery too. nice: of runs, 0 to 19. idle_disk: runs yield the disk to others (ionice)."""

    gpu_idle: bool = True
    idle_s: float = 10.0
    quiet_hours: tuple[str, ...] = ()
    daily_budget: str | None = None
    battery: bool = False
    nice: int = 10
    idle_disk: bool = True
