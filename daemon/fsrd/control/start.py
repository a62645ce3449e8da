"""Starts the service in the background, ends it, and installs it as a unit of the user's systemd."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fsr.errors import FsrError, UsageError
from fsr.settings import Settings
from fsrd.config import read_config
from fsrd.service.instance import Place

STARTING_S, ENDING_S, LOOK_S = 150.0, 60.0, 0.05  # looking for devices alone may take 120 s (fsrd.service.devices)
UNIT = """[Unit]
Description=fsr: makes GPU kernels faster while the machine is idle

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec=30
{environment}
Nice=5

[Install]
WantedBy=default.target
"""
# What a service of systemd would lack: compilers and sanitizers are found on the PATH. No token goes into the file.
KEPT = ("PATH", "CUDA_HOME", "CUDA_PATH", "FSR_CACHE", "FSR_SYSTEM_CACHE", "FSR_WORKERS")


def start(settings: Settings, folders: Sequence[str]) -> str:
    """Begin it in the background and wait until it answers; returns the page's address. Raises UsageError when it
    runs already or its configuration is wrong, FsrError when it ends at once."""
    place = Place.of(settings)
    pid = place.running()
    if pid is not None:
        raise UsageError(f"the daemon runs already, as process {pid}", where=str(place.folder), fix="fsr daemon status")
    watched(settings, folders)
    place.make()
    errors = place.log.with_name("start")
    with errors.open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "fsrd.main", *absolute(folders)], stdin=subprocess.DEVNULL, stdout=told,
            stderr=told, start_new_session=True, env=os.environ | {"FSR_HOME": settings.home},
        )  # fmt: skip
    began = time.monotonic()
    while time.monotonic() < began + STARTING_S:
        if process.poll() is not None:
            raise FsrError(f"the daemon ended at once: {errors.read_text(errors='replace').strip()[-1500:]}")
        if place.running() == process.pid and place.address.exists():
            return place.address.read_text()
        time.sleep(LOOK_S)
    raise FsrError(f"the daemon did not answer within {STARTING_S:g} s", fix="fsr daemon logs says what it does")


def stop(place: Place) -> bool:
    """End it, gracefully: runs are resumed when it starts again. False when it did not run. Raises FsrError when it
    does not end."""
    pid = place.running()
    if not pid:
        return False
    os.kill(pid, signal.SIGTERM)
    began = time.monotonic()
    while time.monotonic() < began + ENDING_S:
        if place.running() != pid:
            return True
        time.sleep(LOOK_S)
    raise FsrError(f"the daemon, process {pid}, does not end", fix=f"kill -9 {pid}: nothing is lost by it")


def absolute(folders: Sequence[str]) -> list[str]:
    """The folders as they are from anywhere."""
    return [str(Path(folder).expanduser().resolve()) for folder in folders]


def watched(settings: Settings, folders: Sequence[str]) -> tuple[str, ...]:
    """The folders that it would watch. Raises UsageError when there is none."""
    place = Place.of(settings)
    config = read_config(place.config, tuple(absolute(folders)))
    if not config.folder:
        raise UsageError(
            "no folder to watch", expected="fsr daemon start FOLDER, or [[folder]] with a path in the configuration",
            where=str(place.config),
        )  # fmt: skip
    return tuple(watched.path for watched in config.folder)


def install(settings: Settings, folders: Sequence[str]) -> Path:
    """Write the systemd unit of this user; returns its path. The same folders, home, Python and PATH as now."""
    watched(settings, folders)
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = base / "systemd" / "user" / "fsr.service"
    words = [sys.executable, "-m", "fsrd.main", *absolute(folders)]
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"FSR_HOME": settings.home} | {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = "\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in kept.items())
    command = " ".join(_quoted(word).replace("$", "$$") for word in words)
    path.write_text(UNIT.format(command=command, environment=environment))
    return path


def _quoted(word: str) -> str:
    """A word as systemd reads it (systemd.syntax(7), systemd.unit(5): '%' is doubled, in a command '$' too)."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
