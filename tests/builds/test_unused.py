"""`fsr lookup --unused`, the hook and the GitHub Action: they fail when a verified winner is not used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.builds.lookup import main
from fsr.cache.bundle import Bundle
from fsr.cache.quarantine import take_in
from fsr.cache.store import Store
from tests.builds.conftest import WINNER, Machine, winner_of

ROOT = Path(__file__).parents[2]


def test_a_winner_is_used_once_it_lies_beside_its_kernel(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(machine.kernel.parent)
    assert main(["--unused", folder], machine.layers) == 0
    machine.publish(winner_of(machine.kernel), replace(winner_of(machine.kernel, contract="p"), basis="predicted"))
    assert main(["--unused", folder], machine.layers) == 1  # no GPU is here: any hardware counts
    assert "k has a verified winner that is not used, 2.50 times as fast on NVIDIA H200" in capsys.readouterr().out
    assert main(["--unused", folder, "--json"], machine.layers) == 1
    assert [row["entry"] for row in json.loads(capsys.readouterr().out)["unused"]] == ["k"]
    beside = machine.kernel.with_name("k.fsr.cu")
    beside.write_text("an old winner")
    assert main(["--unused", folder], machine.layers) == 1
    beside.write_text(WINNER)
    assert main(["--unused", folder], machine.layers) == 0
    beside.unlink()
    (machine.kernel.parent / "loop.cu").symlink_to("loop.cu")
    (machine.kernel.parent / "gone.cu").symlink_to("nowhere.cu")
    (machine.kernel.parent / "scale.cuh").write_text("#define SCALE 4\n")
    assert main(["--unused", folder], machine.layers) == 0  # it is no winner of this kernel any more


def test_what_was_imported_and_cannot_be_verified_here_counts(machine: Machine) -> None:
    with Store(machine.database) as store:
        take_in(store, Bundle("s", "ann", 1, (winner_of(machine.kernel),)))
    assert main(["--unused", str(machine.kernel)], machine.layers) == 1


def test_the_action_and_the_hook_run_it(machine: Machine) -> None:
    machine.publish()
    check = ROOT / "integrations" / "github" / "check.sh"
    told = machine.run("bash", check, FSR_KERNELS="k.cu .", FSR_CACHE_INPUT=str(machine.database))
    assert told.returncode == 1
    assert "not used" in told.stdout
    told = machine.run("bash", check, FSR_KERNELS="k.cu")
    assert told.returncode == 1
    machine.kernel.with_name("k.fsr.cu").write_text(WINNER)
    assert machine.run("bash", check, FSR_KERNELS="k.cu .").returncode == 0
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: fsr lookup --unused\n" in hook
