"""From a description to a kernel: suggestions of a scripted model, judged on the host device, scored, written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsr.app.generating import generate
from fsr.cli.main import run
from fsr.errors import EXIT_USAGE, FsrError, UsageError
from fsr.llm.proficiency import Mark
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.settings import Settings
from tests.llm.server import Reply, ScriptedServer

SPEC = """entry = "axpy"
reference = "axpy.py:axpy"
description = "a times x plus y, as in BLAS"

[sizes]
n = {min = 0, max = 300, timed = 256}

[args]
x = {dtype = "float32", role = "in", shape = ["n"]}
y = {dtype = "float32", role = "inout", shape = ["n"]}
a = {dtype = "float32", low = -2, high = 2}
n = {value = "n"}
"""
REFERENCE = "def axpy(x, y, a):\n    return a * x + y\n"
LAUNCH = "// launch: axpy | ceil_div(n, 64) | 64 | 0 | x y a n\n"
KERNEL = """__global__ void axpy(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
RIGHT = f"```cuda\n{LAUNCH}{KERNEL}```"
OFF_BY_ONE = RIGHT.replace("i < n", "i < n - 1")
NO_LAUNCH = f"```cuda\n{KERNEL}```"
OTHER_MODELS = {
    "OpenMP": "```cpp\nvoid axpy() {\n#pragma omp parallel for\n for (int i = 0; i < n; i++) y[i] += x[i];\n}\n```",
    "Numba": "```python\nfrom numba import cuda\n@cuda.jit\ndef axpy(x, y, a): pass\n```",
    "PyCUDA": f'```python\nimport pycuda.autoinit\nmod = SourceModule("""{KERNEL}""")\n```',
    "HIP": f"```cpp\n#include <hip/hip_runtime.h>\n{KERNEL}```",
    "Julia": "```julia\nusing CUDA\nfunction axpy!(y, a, x)\n  y .+= a .* x\nend\n```",
    "Kokkos": "```cpp\nKokkos::parallel_for(n, KOKKOS_LAMBDA(int i) { y(i) += a * x(i); });\n```",
}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "axpy.py").write_text(REFERENCE)
    path = tmp_path / "axpy.toml"
    path.write_text(SPEC)
    return path


class Model(ScriptedServer):
    """Answers in turn."""

    def __init__(self, *answers: str) -> None:
        super().__init__(lambda request, number: Reply(answers[number % len(answers)]))

    def options(self, **more: Any) -> RefineOptions:
        return RefineOptions(Path(), device="host", llm=(f"{self.url}#scripted",), **more)


@pytest.fixture
def models() -> Iterator[list[Model]]:
    made: list[Model] = []
    yield made
    for one in made:
        one.close()


def settings(tmp_path: Path) -> Settings:
    return Settings(str(tmp_path / "home"), str(tmp_path / "home" / "cache.db"))


def test_the_right_one_is_written_with_its_contract_and_the_rest_is_scored(
    spec: Path, tmp_path: Path, models: list[Model]
) -> None:
    host = RIGHT.replace("__global__", "int main() { cudaMalloc(0, 4); }\n__global__")
    models.append(Model("I cannot do that.", OFF_BY_ONE, RIGHT, RIGHT, host, NO_LAUNCH, OTHER_MODELS["OpenMP"]))
    told = generate(spec, models[0].options(), settings(tmp_path), 7)
    marks = [one.mark for one in told.suggestions]
    assert marks == [Mark.WRONG, Mark.RIGHT, Mark.WRONG, Mark.WRONG, Mark.OTHER_MODEL]
    assert "differs from the reference" in told.suggestions[0].why
    assert told.suggestions[-1].why == "OpenMP"
    assert (told.score, told.refused) == (0.25, {"prose": 1, "duplicate": 1})
    assert told.output == tmp_path / "axpy.cu"
    kernel = load_kernel(told.output)
    assert (kernel.contract.reference, kernel.contract.plan.launches[0].block[0]) == ("axpy.py:axpy", "64")
    asked = models[0].requests[0]["messages"][-1]["content"]
    assert all(words in asked for words in ("__global__ void axpy(const float *x", "a * x + y", "as in BLAS"))


def test_what_was_answered_is_not_asked_again(spec: Path, tmp_path: Path, models: list[Model]) -> None:
    models.append(Model(*OTHER_MODELS.values()))
    told = generate(spec, models[0].options(), settings(tmp_path), len(OTHER_MODELS))
    assert [one.why for one in told.suggestions] == list(OTHER_MODELS)
    assert {one.mark for one in told.suggestions} == {Mark.OTHER_MODEL}
    assert (told.output, told.score, told.to_json()["status"]) == (None, 0.0, "failed")
    generate(spec, models[0].options(), settings(tmp_path), len(OTHER_MODELS))
    assert len(models[0].requests) == len(OTHER_MODELS)


def test_without_a_model_it_says_what_is_needed(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as fault:
        generate(spec, RefineOptions(Path()), settings(tmp_path), 1)
    assert all(words in str(fault.value) for words in ("needs a language model", "--llm URL#MODEL", "localhost:11434"))
    small = tmp_path / "small.gguf"
    small.write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="only chooses among moves"):
        generate(spec, RefineOptions(Path(), llm=(f"local:{small}",)), settings(tmp_path), 1)


def test_the_command_without_a_model_ends_as_a_wrong_usage_does(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FSR_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        run(["generate", str(spec), "--language", "cuda"])
    assert ended.value.code == EXIT_USAGE
    assert "none is configured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('reference = "axpy.py:axpy"\n', "", "no reference"),
        ('x = {dtype = "float32", role', "x = {role", "'x' has no dtype"),
        ('entry = "axpy"', "entry = 5", "the entry is 5"),
        ("axpy.py:axpy", "axpy.py:gemv", "no function 'gemv'"),
        ('shape = ["n"]', 'shape = ["m"]', "axpy.toml:9"),
        ("[args]", "[arguments]", "no arguments"),
    ],
)
def test_a_description_that_cannot_be_used_is_told_at_its_line(
    spec: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    spec.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(FsrError) as fault:
        generate(spec, RefineOptions(Path(), llm=("http://127.0.0.1:9/v1#m",)), settings(tmp_path), 1)
    assert says in str(fault.value)


def test_a_file_that_is_there_stays(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "axpy.cu").write_text(KERNEL)
    with pytest.raises(UsageError, match="is there already"):
        generate(spec, RefineOptions(Path(), llm=("http://127.0.0.1:9/v1#m",)), settings(tmp_path), 1)
