"""The service's process: SIGHUP reads the configuration anew, a wrong one is told and the old one stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from fsr.settings import Settings
from fsrd.control.client import ask
from fsrd.service.instance import Place
from tests.daemon.stand_in import eventually, kernel


def test_a_signal_has_the_configuration_read_anew(tmp_path: Path) -> None:
    home, folders = tmp_path / "home", [tmp_path / "one", tmp_path / "two"]
    place = Place.of(Settings(str(home), str(home / "cache.db")))
    place.make()
    place.paused.touch()
    for folder in folders:
        folder.mkdir()
        kernel(folder, folder.name)

    def configure(*watched: Path) -> None:
        tables = "".join(f"[[folder]]\npath = '{folder}'\n" for folder in watched)
        place.config.write_text(f"{tables}[run]\ndevice = 'host'\n")

    configure(folders[0])
    environment = os.environ | {"FSR_HOME": str(home)}
    process = subprocess.Popen([sys.executable, "-m", "fsrd.main"], env=environment)
    try:
        assert eventually(place.address.exists, 60)
        assert eventually(lambda: ask(place, "GET", "/api/status")["kernels"] == 1)
        configure(*folders)
        process.send_signal(signal.SIGHUP)
        assert eventually(lambda: ask(place, "GET", "/api/status")["kernels"] == 2)
        place.config.write_text("[[folder]]\npath = '/nowhere/at/all'\n")
        process.send_signal(signal.SIGHUP)
        assert eventually(lambda: "no folder /nowhere/at/all" in place.log.read_text())
        assert ask(place, "GET", "/api/status")["folders"] == [str(folder) for folder in folders]
    finally:
        process.terminate()
        assert process.wait(60) == 0
