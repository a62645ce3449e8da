"""`fsr daemon` as a user has it: a folder is watched, a kernel saved in it, and its winner lies in .fsr/."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fsrd", reason="the daemon's package is not installed: make setup")
pytest.importorskip("watchdog", reason="pip install 'fsr[daemon]'")

from tests.commandline import LARGE_ROW_SUM, Fsr
from tests.daemon.stand_in import eventually

# As other tests' runs: a polite one would wait for them where the suite keeps every core busy.
POLITE = "[polite]\nbattery = true\nnice = 0\nidle_disk = false\n"
CONFIG = '[run]\nbudget = "20m"\nevaluations = 12\ndevice = "host"\n' + POLITE


@pytest.mark.timeout(900)
def test_a_saved_kernel_is_refined_through_kill_and_restart(fsr: Fsr, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    fsr.home.mkdir()
    (fsr.home / "daemon.toml").write_text(CONFIG)
    assert fsr.run("daemon", "status").returncode == 1
    started = fsr.run("daemon", "start", folder)
    try:
        assert started.returncode == 0, started.stderr
        assert "http://127.0.0.1:" in started.stdout
        assert "runs already" in fsr.run("daemon", "start", folder).stderr
        fsr.run("daemon", "pause")
        (folder / "kernel.cu").write_text(LARGE_ROW_SUM)
        status = fsr.home / "daemon" / "lock"
        assert eventually(lambda: fsr.json("daemon", "status")["jobs"]["queued"] == 1)
        os.kill(int(status.read_text()), signal.SIGKILL)
        assert eventually(lambda: fsr.run("daemon", "status").returncode == 1)
        assert fsr.run("daemon", "start", folder).returncode == 0
        assert fsr.json("daemon", "status")["paused"]
        fsr.run("daemon", "resume")
        assert eventually(lambda: "refines kernel.cu: " in fsr.run("daemon", "status").stdout)
        assert eventually((folder / ".fsr" / "kernel.fsr.cu").exists, 700)
        assert eventually(lambda: fsr.json("daemon", "status")["jobs"]["done"] == 1)
        assert str(folder / ".fsr" / "kernel.fsr.cu") in fsr.run("daemon", "status").stdout
        assert json.loads((folder / ".fsr" / "kernel.fsr.json").read_text())["status"] == "improved"
        assert (folder / "kernel.cu").read_text() == LARGE_ROW_SUM
        logged = fsr.run("daemon", "logs").stdout
        assert "improved" in logged
        assert "a fault" not in logged
        (folder / "broken.cu").write_text("__global__ void k(float *x {")
        assert eventually(lambda: "broken.cu: " in fsr.run("daemon", "status").stdout)
        (run,) = [path.name for path in (fsr.home / "runs").iterdir()]
        assert fsr.run("runs", "report", run, "-o", tmp_path / "report.html").returncode == 0
        data = (tmp_path / "report.html").read_text().partition('id="fsr-run">')[2].partition("</script>")[0]
        view = json.loads(data)
        assert view["result"]["status"] == "improved"
        assert {trial["status"] for trial in view["trials"]} >= {"correct", "promoted"}
        assert "__global__" in view["winner"] != view["original"]
        assert fsr.run("runs", "report", "nobody").returncode == 2
    finally:
        assert "ended" in fsr.run("daemon", "stop").stdout
    assert fsr.run("daemon", "pause").returncode == 2


def test_what_cannot_be_watched_is_told_at_once(fsr: Fsr, tmp_path: Path) -> None:
    assert "no folder to watch" in fsr.run("daemon", "start").stderr
    absent = fsr.run("daemon", "run", tmp_path / "absent")
    assert (absent.returncode, "absent does not exist" in absent.stderr) == (2, True)


def test_the_unit_starts_what_was_asked_for(fsr: Fsr, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with 100 % $HOME"
    folder.mkdir()
    fsr.env |= {"XDG_CONFIG_HOME": str(tmp_path / "config"), "FSR_CACHE": "/a $cache.db", "FSR_REMOTE_TOKEN": "secret"}
    assert fsr.run("daemon", "install", folder).returncode == 0
    unit = (tmp_path / "config" / "systemd" / "user" / "fsr.service").read_text()
    assert '"-m" "fsrd.main"' in unit
    assert f'"{tmp_path}/a folder with 100 %% $$HOME"' in unit
    assert f'Environment="FSR_HOME={fsr.home}"' in unit
    assert f'Environment="PATH={os.environ["PATH"]}"' in unit  # nvcc and the sanitizers are found there
    assert 'Environment="FSR_CACHE=/a $cache.db"' in unit
    assert "secret" not in unit
    assert "Restart=on-failure" in unit
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit
    if shutil.which("systemd-analyze") is not None:
        path = tmp_path / "config" / "systemd" / "user" / "fsr.service"
        verify = ["systemd-analyze", "verify", "--user", path]
        environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
        told = subprocess.run(verify, capture_output=True, text=True, check=False, env=environment)
        assert (told.returncode, "fsr.service:" in told.stderr) == (0, False), told.stderr
