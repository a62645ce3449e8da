"""What the owner of a machine lets the daemon do: ``daemon.toml`` in the folder that ``fsr doctor`` names."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from fsr.errors import UsageError
from fsr.given import checked_define, checked_folder
from fsr.hardware.gpus import target_of
from fsr.runs.options import RefineOptions, parse_duration
from fsrd.politeness.hours import Hours
from fsrd.politeness.rules import PoliteTable
from fsrd.strict import Strict
from fsrd.watching.folder import INCLUDE, Folder

RESULTS = ".fsr"


class WatchedFolder(Strict, frozen=True):
    """``[[folder]]``. path: '~' stands for the home. include, exclude: patterns as in .gitignore. polling: look now and
    then; by default on network file systems only. results: where winners go, from the kernel's folder or absolute.
    include_dirs, defines: -I and -D of its kernels, the folders from this one."""

    path: str
    include: tuple[str, ...] = INCLUDE
    exclude: tuple[str, ...] = ()
    polling: bool | None = None
    results: str = RESULTS
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()

    def folder(self) -> Folder:
        """The folder as it is watched: absolute, links resolved, so that no kernel has two names."""
        root = Path(self.path).expanduser().resolve()
        folders = tuple(str(root / Path(name).expanduser()) for name in self.include_dirs)
        return Folder(root, self.include, self.exclude, self.polling, folders, self.defines)


class RunTable(Strict, frozen=True):
    """``[run]``: what every run is given; the same as the options of `fsr refine`. device: 'auto' for all GPUs, one run
    on each, or the host device where there is none. workers: compile processes of a run. ray: the address of a running
    Ray cluster, whose devices are taken in place of this machine's."""

    budget: str = "5m"
    evaluations: int | None = None
    device: str = "auto"
    target: str = "sm_90"
    keep_launch: bool = False
    workers: int | None = None
    seed: int = 0
    ray: str | None = None


class WinTable(Strict, frozen=True):
    """``[win]``. command: words of a command, run on every win; it is told by FSR_KERNEL, FSR_OUTPUT, FSR_SPEEDUP,
    FSR_BASIS and FSR_RUN in its environment. timeout_s: after which it is ended."""

    command: tuple[str, ...] = ()
    timeout_s: float = 60.0


class HttpTable(Strict, frozen=True):
    """``[http]``. port: on the loopback address, 0 for any that is free. enabled: the Unix socket is there anyway."""

    enabled: bool = True
    port: int = 0


class Config(Strict, frozen=True):
    """The whole file."""

    folder: tuple[WatchedFolder, ...] = ()
    run: RunTable = RunTable()
    polite: PoliteTable = PoliteTable()
    win: WinTable = WinTable()
    http: HttpTable = HttpTable()

    def options(self, kernel: str, device: str, output: Path, ray: str | None = None) -> RefineOptions:
        """What a run of a kernel is given on a device, one of the cluster ``ray`` where that is told."""
        run, watched = self.run, self.holding(kernel)
        folder = watched.folder() if watched is not None else None
        return RefineOptions(
            Path(kernel), device, run.target, parse_duration(run.budget), run.evaluations, run.seed, None,
            run.keep_launch, run.workers, ray, output, include_dirs=folder.include_dirs if folder is not None else (),
            defines=folder.defines if folder is not None else (),
        )  # fmt: skip

    def holding(self, kernel: str) -> WatchedFolder | None:
        """The innermost watched folder that a kernel lies in."""
        found = [watched for watched in self.folder if watched.folder().relative(kernel) is not None]
        return max(found, key=lambda watched: len(str(watched.folder().root)), default=None)


def read_config(path: Path, folders: tuple[str, ...] = ()) -> Config:
    """The configuration of a file, of defaults where there is none; ``folders`` of the command line take the place of
    its own. Raises UsageError that says which entry is wrong."""
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"the daemon's configuration cannot be read: {fault}", where=str(path)) from None
    if folders:
        data["folder"] = [{"path": str(_existing(folder))} for folder in folders]
    try:
        config = msgspec.convert(data, Config)
        _check(config)
    except (msgspec.ValidationError, UsageError, ValueError) as fault:
        what = fault.what if isinstance(fault, UsageError) else str(fault)
        raise UsageError(
            f"the daemon's configuration is wrong: {what}", where=str(path),
            fix="docs/daemon.md lists every entry with its default",
        ) from None  # fmt: skip
    return config


def _existing(folder: str) -> Path:
    """A folder of the command line. Raises UsageError when it is none."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise UsageError(
            f"{folder} {what}", expected="a folder of kernels", where="fsr daemon",
            fix=f"name the folder: {path.parent}" if path.exists() else f"mkdir -p {path}, or name another",
        )  # fmt: skip
    return path


def _check(config: Config) -> None:
    """Raises UsageError or ValueError for values that are of the right kind and cannot be."""
    for name, text in (("run.budget", config.run.budget), ("polite.daily_budget", config.polite.daily_budget)):
        try:
            parse_duration(text if text is not None else "1h")
        except UsageError as fault:
            raise ValueError(f"{name} is {text!r}, expected {fault.expected}") from None
    try:
        target_of(config.run.target)
    except UsageError as fault:
        raise ValueError(f"run.target is {config.run.target!r}, expected {fault.expected}") from None
    for text in config.polite.quiet_hours:
        Hours.parse(text)
    if not 0 <= config.polite.nice <= 19:
        raise ValueError(f"polite.nice is {config.polite.nice}, expected 0 to 19")
    if not 0 <= config.http.port <= 65535:
        raise ValueError(f"http.port is {config.http.port}, expected 0 to 65535")
    for folder in config.folder:
        if not folder.folder().root.is_dir():
            raise ValueError(f"there is no folder {folder.path}")
        for name in folder.folder().include_dirs:
            checked_folder(name)
        for text in folder.defines:
            checked_define(text)
