"""``fsr contract``: what it prints, what it writes, how it fails."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from fsr.cli.contract import contract_command
from fsr.contract.load import load_contract
from fsr.errors import StorageError

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*args: str):
    return CliRunner().invoke(contract_command, list(args), catch_exceptions=False, standalone_mode=False)


def test_an_inferred_contract_is_shown_and_written(tmp_path):
    path = tmp_path / "k.cu"
    path.write_bytes((EXAMPLES / "scale_bias.cu").read_bytes())
    shown = run(str(path))
    assert shown.stdout.startswith("// /// fsr\n")
    assert "inferred from the code" in shown.stderr
    assert path.read_bytes() == (EXAMPLES / "scale_bias.cu").read_bytes()
    before = load_contract(path)
    run(str(path), "--write")
    after = load_contract(path)
    assert (after.origin.kind, after.args, after.plan) == ("block", before.args, before.plan)
    assert shown.stdout in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["k.cu"]


def test_a_sidecar_is_shown_and_written_as_toml(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k(float *y) { y[0] = 1; }\n")
    sidecar = tmp_path / "k.fsr.toml"
    sidecar.write_text('[args]\ny = {role = "out", shape = 1}\n[launch]\ngrid = 1\nblock = 1\n')
    shown = run(str(path), "--write")
    assert "stated beside the file" in shown.stderr
    assert sidecar.read_text() == shown.stdout
    assert path.read_text() == "__global__ void k(float *y) { y[0] = 1; }\n"


def test_json_is_one_object():
    shown = run(str(EXAMPLES / "gemm.cu"), "--json", "--entry", "gemm")
    data = json.loads(shown.stdout)
    assert data["entry"] == "gemm"
    assert [a["name"] for a in data["args"]] == ["A", "B", "C", "M", "N", "K"]
    assert shown.stderr == ""


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "k.cu"
    path.write_bytes((EXAMPLES / "scale_bias.cu").read_bytes())

    def refuse(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        run(str(path), "--write")
    assert os.listdir(tmp_path) == ["k.cu"]  # noqa: PTH208
