"""What a user may ask of a refinement, validated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from fsr.errors import UsageError

MOST_BUDGET_S = 30 * 86_400.0
UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


@dataclass(frozen=True, slots=True)
class RefineOptions:
    """Options of ``fsr refine``.

    device: 'auto', 'cuda:N' or 'host'. target: architecture to predict for on the host device. budget_s: wall
    seconds for the whole run. evaluations: at most this many candidates (None: no limit). workers: compile
    processes (None: one a core). ray: address of a Ray cluster, with #TYPE for its GPUs of one type, 'local' to start
    one, None for local processes. output: where the winner goes (None: beside the kernel, as kernel.fsr.cu). use_cache:
    start from, and store to, the cache. llm: models that propose, each 'local:PATH', 'URL#MODEL' or a name in
    config.toml. max_cost: dollars that they may cost (None: no cap). yes: the source may go to the hosts of the models
    that were named. replay: a run whose models' answers are used again, instead of asking. include_dirs: folders where
    includes of the kernel file are searched. defines: macros that it is compiled under, each 'NAME' or 'NAME=VALUE'.
    """

    kernel: Path
    device: str = "auto"
    target: str = "sm_90"
    budget_s: float = 300.0
    evaluations: int | None = None
    seed: int = 0
    entry: str | None = None
    keep_launch: bool = False
    workers: int | None = None
    ray: str | None = None
    output: Path | None = None
    use_cache: bool = True
    llm: tuple[str, ...] = ()
    max_cost: float | None = None
    yes: bool = False
    replay: str | None = None
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("llm", "include_dirs", "defines"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(map(str, value)))
        for name in ("kernel", "output"):  # text will do
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, Path(getattr(self, name)))


class OptionFields(TypedDict, total=False):
    """The fields of RefineOptions but the kernel, as keyword arguments."""

    device: str
    target: str
    budget_s: float
    evaluations: int | None
    seed: int
    entry: str | None
    keep_launch: bool
    workers: int | None
    ray: str | None
    output: Path | None
    use_cache: bool
    llm: tuple[str, ...]
    max_cost: float | None
    yes: bool
    replay: str | None
    include_dirs: tuple[str, ...]
    defines: tuple[str, ...]


def default_output(kernel: Path) -> Path:
    """``kernel.fsr.cu`` beside ``kernel.cu``."""
    return kernel.with_name(f"{kernel.stem}.fsr{kernel.suffix or '.cu'}")


def parse_duration(text: str) -> float:
    """Seconds of '90', '60s', '5m', '1.5h'. Raises UsageError when it is none, or not above zero."""
    found = re.fullmatch(r" *(\d+(?:\.\d*)?|\.\d+) *(ms|s|m|h|) *", text, re.ASCII)
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if not 0 < seconds <= MOST_BUDGET_S:
        raise UsageError(
            f"the budget is {text[:40]!r}", expected="a time above zero, at most 30 days: 90s, 5m or 1h",
            where="--budget",
            fix="give the search some time: --budget 5m",
        )  # fmt: skip
    return seconds
