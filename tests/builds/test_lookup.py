"""`fsr lookup`: one kernel, many, a manifest, and why it missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsr.builds.lookup import main
from fsr.builds.queue import read, waiting
from tests.builds.conftest import KERNEL, WINNER, Machine, digest, winner_of


def test_the_command_prints_the_path_and_exits_0_or_3(seen: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = str(seen.kernel)
    assert main([kernel], seen.layers) == 3
    assert "no measured winner" in capsys.readouterr().err
    seen.publish()
    assert main([kernel], seen.layers) == 0
    assert Path(capsys.readouterr().out.strip()).read_text() == WINNER
    assert main([kernel, "--json", "-o", str(seen.folder / "out")], seen.layers) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["tier"], told["basis"]) == ("hit", "exact", "measured")
    assert Path(told["files"][0]).parent.name == "out"


def test_a_file_that_is_not_there_is_no_miss(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(machine.kernel)], machine.layers) == 3  # no GPU was seen yet
    assert "--explain" in capsys.readouterr().err
    assert main(["absent.cu"], machine.layers) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["--batch", "absent.cu"], machine.layers) == 2
    assert json.loads(capsys.readouterr().out)["status"] == "error"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no kernel named"), (["a.cu", "b.cu"], "unexpected 'b.cu'"), (["--fast"], "unexpected '--fast'"),
        (["k.cu", "--tier"], "needs a value"), (["k.cu", "--tier", "any"], "unknown tier"),
        (["k.cu", "--device", "tpu:0"], "unknown device"), (["absent.cu", "--explain"], "cannot be read"),
        (["k.cu", "--batch", "--manifest", "m"], "do not go together"), (["--manifest", "m"], "no kernel named"),
        (["k.cu", "--compile", "-O3"], "do not go together"), (["--manifest", "m", "absent"], "no such file"),
        (["--explain", "k.cu", "--queue"], "do not go together"),
        (["k.cu", "-I", "absent"], "'absent' does not exist"), (["k.cu", "-D3"], "no name"),
        (["k.cu", "-D"], "needs a value"), (["--unused", "k.cu", "-DA"], "do not go together"),
        (["--manifest", "m", "k.cu", "-DA"], "into --compile FLAGS"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_with_one_message(
    arguments: list[str], message: str, seen: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, seen.layers) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


def test_a_winner_under_other_folders_or_macros_is_none(
    seen: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (seen.folder / "inc").mkdir()
    monkeypatch.chdir(seen.folder)
    kernel, given = str(seen.kernel), ("-I../inc", "-DN=3")
    seen.publish(winner_of(seen.kernel, flags=("-DN=3",), given=given))
    assert main([kernel], seen.layers) == 3
    assert main([kernel, "-Iinc", "-D", "N=4"], seen.layers) == 3
    assert main([kernel, "--include-dir", "inc", "-DN=4", "--define", "N=3"], seen.layers) == 0
    capsys.readouterr()
    assert main(["--batch", kernel, "-Iinc", "-DN=3"], seen.layers) == 0
    assert main(["--explain", kernel], seen.layers) == 3
    assert "refined with -I../inc -DN=3, looked up with no -I or -D" in capsys.readouterr().out
    assert main(["--explain", kernel, "-Iinc", "-DN=3"], seen.layers) == 0


def test_help_is_printed(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], machine.layers) == 0
    assert "usage: fsr lookup" in capsys.readouterr().out


def test_a_batch_answers_a_line_a_kernel_in_their_order(machine: Machine) -> None:
    machine.publish()
    other = machine.kernel.with_name("other.cu")
    other.write_text("__global__ void other() {}\n")
    told = machine.run("fsr", "lookup", "--batch", "other.cu", "k.cu", "absent.cu")
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(row["kernel"], row["status"]) for row in rows] == [
        ("other.cu", "miss"), ("k.cu", "hit"), ("absent.cu", "error")
    ]  # fmt: skip
    assert told.returncode == 2
    assert Path(rows[1]["files"][0]).read_text() == WINNER
    assert (rows[1]["entry"], rows[1]["speedup"]) == ("k", 2.5)


def test_a_miss_is_queued_where_asked_for(machine: Machine) -> None:
    queue = machine.folder / "home" / "queue"
    machine.publish()
    assert machine.run("fsr", "lookup", "k.cu", "--queue").returncode == 0
    other = machine.kernel.with_name("other.cu")
    other.write_text("__global__ void other() {}\n")
    assert machine.run("fsr", "lookup", "other.cu").returncode == 3
    assert list(waiting(queue)) == []
    assert machine.run("fsr", "lookup", "other.cu", "--queue").returncode == 3
    more = machine.kernel.with_name("more.cu")
    more.write_text("__global__ void more() {}\n")
    assert machine.run("fsr", "lookup", "--batch", "k.cu", "more.cu", "absent.cu", "--queue").returncode == 2
    assert {job and job.kernel for job in map(read, waiting(queue))} == {other, more}
    assert machine.run("fsr", "lookup", "more.cu", "-I", ".", "-DN=2", "--queue").returncode == 3
    assert {job.given for job in map(read, waiting(queue)) if job} == {(), (f"-I{more.parent}", "-DN=2")}


def test_a_batch_reads_standard_input(
    seen: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen.publish()
    monkeypatch.setattr("sys.stdin", iter([f"{seen.kernel}\n", "\n"]))
    assert main(["--batch"], seen.layers) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "hit"


def test_the_manifest_lists_what_a_build_may_use_and_keeps_its_time(
    seen: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    seen.publish()
    (seen.kernel.parent / "other.cu").write_text("__global__ void other() {}\n")
    path = seen.folder / "kernels.manifest"
    words = ["--manifest", str(path), str(seen.kernel.parent)]
    assert main(words, seen.layers) == 0
    head, line = path.read_text().splitlines()
    assert head == "# fsr-manifest 1\t-arch=sm_90"
    source, arch, kernel, winner, flags, include = line.split("\t")
    assert include == f"{digest(seen.kernel.parent / 'scale.cuh')} scale.cuh"
    assert (source, arch, Path(kernel), flags) == (digest(seen.kernel), "sm_90", seen.kernel, "")
    assert Path(winner).read_text() == WINNER
    before = path.stat().st_mtime_ns
    assert main(words, seen.layers) == 0
    assert path.stat().st_mtime_ns == before
    assert "unchanged: 1 winner" in capsys.readouterr().err
    assert main([*words, "--compile", "-arch=sm_90 --use_fast_math"], seen.layers) == 0
    assert "flags differ" in capsys.readouterr().err
    assert len(path.read_text().splitlines()) == 1


def test_explain_names_the_part_that_missed(seen: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    def parts(*words: str) -> list[list[str]]:
        main([*words, str(seen.kernel), "--json"], seen.layers)
        told = json.loads(capsys.readouterr().out)
        return [[missed["part"] for missed in row["missed"]] for row in told["layers"][0]["winners"]]

    assert parts("explain") == []
    seen.publish()
    assert parts("explain") == [[]]
    assert main(["--explain", str(seen.kernel)], seen.layers) == 0
    assert "takes the original's place" in capsys.readouterr().out
    (seen.kernel.parent / "scale.cuh").write_text("#define SCALE 4\n")
    assert parts("--explain") == [["include"]]
    seen.kernel.write_text(KERNEL + "// touched\n")
    assert parts("--explain") == [["source", "include"]]
    assert main(["--explain", str(seen.kernel)], seen.layers) == 3
    told = capsys.readouterr().out
    assert "0 winners stored" in told
    assert "k was refined in a file of other bytes" in told
    assert "scale.cuh changed" in told
    seen.publish(winner_of(seen.kernel, driver="1.0", hardware="other"))
    assert parts("--explain") == [["hardware"]]
