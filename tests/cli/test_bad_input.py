"""Bad input: each a message of one screen that says what arrived, what was expected, where and what to do next;
the right exit code; nothing on standard output, nothing half-written."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fsr.cache import connection
from fsr.cli.main import fsr, run
from fsr.errors import EXIT_FAILED, EXIT_MISSING_TOOL, EXIT_USAGE
from tests.commandline import ROW_SUM, Command

SCREEN = 24


@pytest.fixture
def refused(cli: Command, tmp_path: Path) -> Callable[..., str]:
    """Refine a text and be refused: returns the message, after checks that hold for every refusal."""

    def refuse(text: str | None, code: int, *options: object, output: Path | None = None) -> str:
        kernel = tmp_path / "kernel.cu"
        if text is not None:
            kernel.write_text(text)
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        where = [] if output is None else ["-o", output]
        told = cli(
            "refine", kernel, "--device", "host", "--budget", "5m", "--evaluations", 12, *where, *options, "--json"
        )
        assert told.code == code, told.err
        assert told.out == ""
        message = "\n".join(line for line in told.err.splitlines() if not re.match(r"fsr: \w+: \w+, \d+ s", line))
        assert "Traceback" not in message
        assert "a fault of fsr" not in message
        assert message.startswith("fsr: ")
        assert len(message.splitlines()) <= SCREEN
        assert "\n  next: " in message
        made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
        assert {path for path in made if "home" not in path.parts and ".db" not in path.name} == set()
        assert not [path for path in made if path.name == "events.jsonl" and not path.stat().st_size]
        return message

    return refuse


def changed(old: str, new: str) -> str:
    assert old in ROW_SUM
    return ROW_SUM.replace(old, new)


def line_of(text: str, wanted: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if wanted in line)


# ---------------------------------------------------------------- the file


def test_a_file_that_is_not_there(refused):
    message = refused(None, EXIT_USAGE)
    assert "kernel.cu" in message
    assert "No such file" in message


def test_a_file_that_may_not_be_read(refused, tmp_path):
    (tmp_path / "kernel.cu").mkdir()
    assert "cannot be read" in refused(None, EXIT_USAGE)


def test_an_empty_file(refused):
    assert "is empty" in refused("", EXIT_USAGE)


def test_a_binary_file(refused):
    assert "binary" in refused("\x7fELF\0\0\0", EXIT_USAGE)


def test_no_kernel(refused):
    message = refused("int main() { return 0; }\n", EXIT_USAGE)
    assert "no kernel" in message
    assert "__global__" in message


@pytest.mark.parametrize("before", [True, False])
def test_debug_stands_before_the_command_or_behind_it(cli, tmp_path, monkeypatch, before):
    """With the traceback of a fault; without it, a fault of fsr itself says what to do, which works."""
    (tmp_path / "kernel.cu").write_text(ROW_SUM)

    def broken(*_: object, **__: object) -> None:
        raise IndexError("at fault")

    monkeypatch.setattr("fsr.contract.load.read_contract", broken)
    told = cli("contract", tmp_path / "kernel.cu")
    assert told.code == EXIT_FAILED
    assert "a fault of fsr itself: IndexError: at fault" in told.err
    assert "next: run again with --debug" in told.err
    words = ["contract", str(tmp_path / "kernel.cu")]
    with pytest.raises(IndexError, match="at fault"):
        run(["--debug", *words] if before else [*words, "--debug"])


def test_lookup_keeps_what_is_nvccs() -> None:
    assert fsr.parse_args(fsr.context_class(fsr), ["lookup", "k.cu", "--", "--debug"])[-1] == "--debug"
    context = fsr.context_class(fsr)
    fsr.parse_args(context, ["lookup", "k.cu", "--debug"])
    assert not context.params["debug"]


def test_several_kernels_and_none_named(refused):
    kernel = "__global__ void {0}(int n, float *x) {{ int i = threadIdx.x; if (i < n) x[i] = 1; }}\n"
    message = refused(kernel.format("first") + kernel.format("second"), EXIT_USAGE)
    assert "first, second" in message
    assert "--entry" in message


@pytest.mark.parametrize(("old", "new"), [("sum += x", "sum += += x"), ("sum += x[", "sum += nowhere[")])
def test_a_kernel_that_does_not_compile(refused, tmp_path, old, new):
    """The compiler's message, at the line of the user's file."""
    text = changed(old, new)
    message = refused(text, EXIT_FAILED)
    assert f"{tmp_path / 'kernel.cu'}:{line_of(text, new)}: " in message
    assert "error: " in message
    assert "candidate.cu:" not in message


# ---------------------------------------------------------------- the contract


def test_a_contract_naming_an_argument_that_is_not_there(refused, tmp_path):
    text = changed('// x = {role = "in"', '// input = {role = "in"')
    message = refused(text, EXIT_USAGE)
    assert f"kernel.cu:{line_of(text, 'input =')}: " in message
    assert "'input'" in message
    assert "x, y, rows, cols" in message


@pytest.mark.parametrize("expression", ["ceil_div(rowz, 64)", "rows //", "__import__('os')", "rows / 64"])
def test_a_size_expression_that_does_not_evaluate(refused, expression):
    text = changed("ceil_div(rows, 64)", expression)
    message = refused(text, EXIT_USAGE)
    assert f"kernel.cu:{line_of(text, '// grid')}: " in message
    assert expression in message


def test_a_size_expression_that_divides_by_zero(refused):
    assert "zero" in refused(changed("ceil_div(rows, 64)", "rows // (cols - cols)"), EXIT_USAGE)


def test_sizes_too_large_for_the_device(refused):
    text = changed("max = 256, timed = 128", "max = 400000, timed = 400000")
    message = refused(text.replace("max = 128, timed = 64", "max = 90000, timed = 90000"), EXIT_FAILED)
    assert "rows=400000, cols=90000" in message
    assert "GB" in message
    assert "timed sizes" in message


# ---------------------------------------------------------------- the kernel itself


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("j < cols", "j <= cols", "out-of-bounds"),
        ("y[row] = sum", "y[row] = y[row + (rows == 1)] = sum", "out-of-bounds"),  # where no other test watches
        ("y[row] = sum", "y[0] = sum", "race"),
        ("y[row] = sum", "y[row] = sum + (float)(clock64() % 1000)", "nondeterministic"),
        ("y[row] = sum", "y[row] += sum", "uninitialised"),
    ],
)
def test_a_kernel_that_fails_its_own_tests(refused, old, new, kind):
    text = changed(old, new)
    message = refused(text, EXIT_FAILED)
    assert kind in message
    assert re.search(r"case '.+' \(rows=\d+, cols=\d+; values [\w-]+\)", message)
    if kind in ("out-of-bounds", "race"):
        assert f"kernel.cu:{line_of(text, new)}: " in message


def test_a_kernel_that_hangs(refused):
    message = refused(changed("j < cols; j++", "j < cols; j += 0"), EXIT_FAILED)
    assert "hang" in message
    assert "did not end within 10 s" in message


# ---------------------------------------------------------------- where things go


def test_an_output_folder_that_cannot_be_made(refused, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    message = refused(ROW_SUM, EXIT_FAILED, output=tmp_path / "file" / "out.cu")
    assert str(tmp_path / "file") in message
    assert "-o" in message


def test_an_output_folder_that_is_read_only(refused, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("root writes to read-only folders")
    assert "permission denied" in refused(ROW_SUM, EXIT_FAILED, output=folder / "out.cu")


@pytest.mark.parametrize("name", ["kernel.cu", "/dev/null", "."])
def test_an_output_that_would_replace_what_is_not_its_own(refused, tmp_path, name):
    message = refused(ROW_SUM, EXIT_USAGE, output=tmp_path / name)
    assert "the output is " in message
    assert (tmp_path / "kernel.cu").read_text() == ROW_SUM


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB with no room left."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid():
        pytest.skip("only root can make a file system to fill")
    command = [mount, "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run([umount, "-l", str(folder)], check=True)


def fill(folder: Path, leave: int) -> None:
    (folder / "filler").write_bytes(b"x" * (65536 - leave))


def test_a_full_disk_under_the_output(refused, full_disk):
    fill(full_disk, 0)
    few = ROW_SUM.replace("max = 256, timed = 128", "max = 32, timed = 32")
    long_rows = few.replace("max = 128, timed = 64", "max = 1024, timed = 1024")  # something is won
    message = refused(long_rows, EXIT_FAILED, "--evaluations", 2, output=full_disk / "out.cu")
    assert "No space left" in message
    assert [path.name for path in full_disk.iterdir()] == ["filler"]


def test_a_full_disk_under_the_home(refused, full_disk, monkeypatch):
    monkeypatch.setenv("FSR_HOME", str(full_disk))
    fill(full_disk, 4096)
    message = refused(ROW_SUM, EXIT_FAILED)
    assert str(full_disk) in message
    assert "full" in message or "No space left" in message


def test_a_full_disk_under_the_cache(refused, full_disk, monkeypatch):
    monkeypatch.setenv("FSR_CACHE", str(full_disk / "cache.db"))
    fill(full_disk, 8192)
    assert "cache database cannot be written" in refused(ROW_SUM, EXIT_FAILED)


def test_a_home_that_cannot_be_made(refused, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FSR_HOME", str(tmp_path / "file"))
    assert "FSR_HOME" in refused(ROW_SUM, EXIT_FAILED)


# ---------------------------------------------------------------- the database


def test_a_damaged_database(refused, cli, tmp_path, monkeypatch):
    database = tmp_path / "damaged.db"
    database.write_bytes(b"this is no database" * 400)
    monkeypatch.setenv("FSR_CACHE", str(database))
    message = refused(ROW_SUM, EXIT_FAILED)
    assert str(database) in message
    assert database.read_bytes() == b"this is no database" * 400
    assert cli("cache", "list").code == EXIT_FAILED


def test_a_locked_database(refused, tmp_path, monkeypatch):
    database = tmp_path / "held.db"
    monkeypatch.setenv("FSR_CACHE", str(database))
    monkeypatch.setattr(connection, "BUSY_S", 0.2)
    holder = sqlite3.connect(database, isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        message = refused(ROW_SUM, EXIT_FAILED)
    finally:
        holder.close()
    assert "locked" in message
    assert "--no-cache" in message


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--device", "quantum"], EXIT_USAGE, "unknown device 'quantum'"),
        (["--device", "hip:0"], EXIT_MISSING_TOOL, "hip:0"),
        (["--device", "cuda:99"], EXIT_MISSING_TOOL, "cuda:99"),
        (["--budget", "0"], EXIT_USAGE, "budget is '0'"),
        (["--budget", "0s"], EXIT_USAGE, "budget is '0s'"),
        (["--budget", "soon"], EXIT_USAGE, "budget is 'soon'"),
        (["--target", "sm_9000"], EXIT_USAGE, "sm_9000"),
        (["--entry", "nobody"], EXIT_USAGE, "nobody"),
        (["--resume", "no-such-run"], EXIT_USAGE, "no-such-run"),
    ],
)
def test_options_that_make_no_sense(refused, options, code, words):
    assert words in refused(ROW_SUM, code, *options)


def test_a_setting_that_makes_no_sense(refused, monkeypatch):
    monkeypatch.setenv("FSR_WORKERS", "many")
    assert "FSR_WORKERS" in refused(ROW_SUM, EXIT_USAGE)


@pytest.mark.parametrize("arguments", [["refine", "k.cu", "--nope"], ["nonsense"], ["check", "k.cu"], ["refine"]])
def test_words_that_are_no_command(cli, arguments):
    told = cli(*arguments)
    assert told.code == EXIT_USAGE
    assert told.out == ""
    assert len(told.err.splitlines()) <= 4
