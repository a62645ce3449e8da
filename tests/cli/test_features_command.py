"""`fsr features`: what holds a kernel back, to a person and to a script."""

from __future__ import annotations

from pathlib import Path

from tests.commandline import ROW_SUM, Fsr


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(ROW_SUM.splitlines(), 1) if text in line)


def test_a_person_reads_causes_and_their_own_lines(fsr: Fsr, row_sum: Path) -> None:
    done = fsr.run("features", row_sum)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("row_sum at rows = 128, cols = 64\npredicted ")
    assert "what the time goes to:" in done.stdout
    assert f":{line_of('sum += x')}" in done.stdout or f"line {line_of('sum += x')}" in done.stdout
    assert "reads 'x', 4 bytes a thread: 32.0 sectors of 32 bytes a request" in done.stdout


def test_a_script_reads_one_object_that_says_it_is_a_prediction(fsr: Fsr, row_sum: Path) -> None:
    told = fsr.json("features", row_sum, "--target", "sm_80")
    assert (told["entry"], told["basis"], told["target"]["arch"]) == ("row_sum", "predicted", "sm_80")
    assert told["sizes"] == {"rows": 128, "cols": 64}
    assert told["time_ns"] > 0
    assert told["binds"] in told["parts_ns"]
    features = told["features"]
    assert features["source"]["loops"] == 1
    assert features["access"]["sectors_a_request"] > 4
    assert features["bottlenecks"][0]["name"] == told["binds"]
    assert features["bottlenecks"][0]["evidence"]
    assert any(str(line_of("sum += x")) in remark["where"] for remark in told["lines"])


def test_a_kernel_that_reads_past_its_buffer_is_told_so_instead(fsr: Fsr, row_sum: Path) -> None:
    row_sum.write_text(ROW_SUM.replace("j < cols", "j <= cols"))
    done = fsr.run("features", row_sum)
    assert done.returncode == 1
    assert "out-of-bounds" in done.stderr
    assert done.stdout == ""
