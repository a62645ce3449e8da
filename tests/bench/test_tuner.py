"""What Kernel Tuner finds becomes a candidate that fsr's launcher runs; a stand-in for it chooses a configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fsr.app.checking import load_candidate
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.select import open_device, parse_device
from fsr.bench.agreement import agrees, disagreement
from fsr.bench.suite import load_suite
from fsr.bench.tuner import Tuner, TunerAsked, read_space
from fsr.errors import UsageError
from fsr.evaluation.testing import Runnable, run_once
from fsr.records import Image
from fsr.runs.kernel import load_kernel
from fsr.testgen.cases import smoke
from fsr.testgen.values import build

OWN = Path(__file__).parents[2] / "benchmarks" / "suite"
CHOSEN = {
    "gemm_1024": {"block_size_x": 16, "block_size_y": 8, "TM": 4, "TN": 2, "TK": 8},
    "transpose": {"block_size_x": 32, "block_size_y": 8, "EACH": 4, "PAD": 1},
}


def tuning(monkeypatch: pytest.MonkeyPatch, chosen: dict[str, int], seen: list[object]) -> None:
    """A Kernel Tuner that measures one configuration, and one that does not run."""

    def tune_kernel(name, source, problem, arguments, parameters, **options):
        seen.append((problem, [getattr(a, "shape", None) for a in arguments], options["grid_div_x"]))
        assert all(chosen[n] in values for n, values in parameters.items())
        return [{**chosen, "time": 2.5}, {**chosen, "time": "does not run"}], {}

    monkeypatch.setitem(sys.modules, "kernel_tuner", SimpleNamespace(tune_kernel=tune_kernel))


def small(name: str, folder: Path) -> tuple[Path, Path]:
    """The workload's kernel at small sizes, and its space."""
    workload = load_suite(OWN).chosen([name])[0]
    assert workload.space is not None
    text = workload.kernel.read_text().replace("timed = 1024", "timed = 33").replace("timed = 8192", "timed = 70")
    path = folder / f"{name}.cu"
    path.write_text(text)
    return path, workload.space


@pytest.mark.parametrize("name", CHOSEN)
def test_the_best_configuration_is_a_candidate_that_computes_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[object] = []
    tuning(monkeypatch, CHOSEN[name], seen)
    path, space = small(name, tmp_path)
    told = Tuner(TunerAsked(path, space, "cuda:0", 1.0, 0, tmp_path / "tuned.cu")).tune()
    assert told == {"configurations": 2, "ran": 1, "best": CHOSEN[name]}
    assert len(seen) == 1
    kernel = load_kernel(path)
    candidate = load_candidate(tmp_path / "tuned.cu", kernel)
    case = smoke(kernel.contract, 0, 4_000)
    data, device, answers = build(kernel.contract, case), open_device(parse_device("host")), []
    for one in (kernel.baseline, candidate):
        image = HostToolchain().compile(one)
        assert isinstance(image, Image), image
        answers.append(run_once(Runnable(device, image, one.plan, kernel.contract), case, data))
    device.close()
    written = kernel.contract.buffers()[-1].name
    assert agrees(disagreement(answers[1][written], answers[0][written]), "float32")


def test_a_space_that_lacks_something_is_told(tmp_path: Path):
    (tmp_path / "x.tune.toml").write_text('entry = "x"\n')
    with pytest.raises(UsageError, match="'args' is missing or unknown"):
        read_space(tmp_path / "x.tune.toml")
