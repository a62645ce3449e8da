"""References of the user's: whatever they do is told as a fault of the contract, at their own line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.contract.load import load_contract
from fsr.errors import ContractError
from fsr.records import Case
from fsr.source.file import KernelFile
from fsr.testgen import users_function
from fsr.testgen.reference import reference_outputs
from fsr.testgen.values import build
from tests.commandline import ROW_SUM

CASE = Case("c", (("rows", 5), ("cols", 3)), "normal", 1)


def answered(tmp_path: Path, body: str, name: str = "ref.py:f") -> np.ndarray:
    (tmp_path / "ref.py").write_text(f"import numpy as np\nimport time, sys\ndef f(x, rows):\n    {body}\n")
    contract = replace(load_contract(KernelFile.from_text(ROW_SUM, "k.cu")), reference=name)
    return reference_outputs(contract, CASE, build(contract, CASE), tmp_path)["y"]


@pytest.mark.parametrize("body", ["return x.sum(axis=1)", "return {'y': x.sum(axis=1)}", "return (x.sum(axis=1),)",
                                  "print('hello'); return [float(v) for v in x.sum(axis=1)]"])  # fmt: skip
def test_what_it_may_return(tmp_path: Path, body: str, capsys: pytest.CaptureFixture[str]) -> None:
    contract = load_contract(KernelFile.from_text(ROW_SUM, "k.cu"))
    wanted = build(contract, CASE).arrays["x"].astype(np.float64).sum(axis=1)
    assert np.allclose(answered(tmp_path, body), wanted, rtol=1e-12)
    assert capsys.readouterr().out == "", "standard output is a command's own"


@pytest.mark.parametrize(
    ("body", "words", "line"),
    [
        ("return 1 / 0", "raised ZeroDivisionError", 4),
        ("sys.exit(0)", "raised SystemExit", 4),
        ("return x", "no array of shape (5,) for y", None),
        ("return x.sum(axis=1), x", "returned 2 arrays for the outputs y", None),
        ("return {'z': x}", "returned no 'y'", None),
        ("return None", "type object", None),
        ("return np.array(['a'] * 5)", "elements of type", None),
        ("return x.sum(axis=1) + 1j", "elements of type complex128", None),
        ("raise BaseException('all')", "raised BaseException: all", 4),
    ],
)
def test_what_it_may_not(tmp_path: Path, body: str, words: str, line: int | None) -> None:
    with pytest.raises(ContractError) as told:
        answered(tmp_path, body)
    assert words in str(told.value)
    assert f"ref.py:{line}" in told.value.where if line else "ref.py" in str(told.value)


def test_one_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_function, "FIRST_S", 0.2)
    with pytest.raises(ContractError, match=r"did not answer within 0.2 s"):
        answered(tmp_path, "while True: time.sleep(0.01)")


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="has no function 'g'"):
        answered(tmp_path, "return x", "ref.py:g")
    with pytest.raises(ContractError, match="cannot be loaded"):
        answered(tmp_path, "return x", "other.py:f")
