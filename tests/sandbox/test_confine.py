"""What a confined program may do, tried in processes of their own."""

from __future__ import annotations

import faulthandler
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fsr.errors import MissingToolError
from fsr.sandbox import landlock, seccomp
from fsr.sandbox.confine import Support, require_support, support
from fsr.sandbox.launch import confined
from fsr.sandbox.syscalls import COMPUTING, NEVER_COMPILING, NUMBERS

needs_landlock = pytest.mark.skipif(not support().landlock, reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(not support().seccomp, reason="this kernel has no seccomp")
ROOT = str(Path(__file__).parents[2])


def shell(command: str, scratch: Path, **limits: float) -> subprocess.CompletedProcess[str]:
    amounts = {"memory_bytes": 4 << 30, "file_bytes": 1 << 20, "cpu_s": 20.0} | limits
    line = confined([shutil.which("sh") or "/bin/sh", "-c", command], read=[], write=[str(scratch)], **amounts)
    return subprocess.run(line, capture_output=True, text=True, timeout=200, check=False, cwd=scratch)


@pytest.fixture
def scratch(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "secret").write_text("hunter2")
    return tmp_path / "scratch"


def test_a_confined_program_works_in_its_scratch_folder(scratch):
    done = shell("echo text > made && cat made && rm made && echo gone > /dev/null", scratch)
    assert (done.returncode, done.stdout, done.stderr) == (0, "text\n", "")


@needs_landlock
def test_a_confined_program_reads_and_writes_nothing_else(scratch):
    done = shell("cat ../secret; echo x > ../written; rm ../secret; mkdir ../folder", scratch)
    assert done.stdout == ""
    assert done.stderr.count("denied") == 4
    assert sorted(path.name for path in scratch.parent.iterdir()) == ["scratch", "secret"]


@needs_seccomp
def test_a_confined_program_kills_nobody(scratch):
    sleeper = subprocess.Popen([shutil.which("sleep") or "sleep", "60"])
    try:
        done = shell(f"kill -9 {sleeper.pid}", scratch)
        assert done.returncode != 0
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


@needs_seccomp
def test_a_confined_program_opens_no_socket(scratch):
    attempt = "import socket\ntry:\n    socket.socket()\n    print('open')\nexcept OSError:\n    print('refused')"
    line = confined(
        [sys.executable, "-c", attempt], read=[sys.prefix, sys.base_prefix, ROOT], write=[str(scratch)],
        memory_bytes=4 << 30, file_bytes=1 << 20, cpu_s=20,
    )  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, timeout=200, check=False, cwd=scratch)
    assert done.stdout == "refused\n", done.stderr


def test_files_and_processor_time_are_limited(scratch):
    shell("exec 2>/dev/null; yes > big", scratch, file_bytes=4096)
    assert (scratch / "big").stat().st_size <= 4096
    assert shell("while :; do :; done", scratch, cpu_s=1.0).returncode < 0


def forked(body) -> int:
    """The exit code of a child that runs ``body`` and exits with what it returns."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(body())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_seccomp
def test_a_computing_process_may_end_itself_but_start_and_signal_no_other():
    def tries() -> int:
        seccomp.install(seccomp.only(COMPUTING, os.getpid()))
        refused = 0
        for call in (os.fork, lambda: os.kill(os.getppid(), 0), socket.socket, lambda: os.execv("/bin/true", ["true"])):
            try:
                call()
            except OSError:
                refused += 1
        return refused

    assert forked(tries) == 4

    def abort() -> int:
        faulthandler.disable()
        seccomp.install(seccomp.only(COMPUTING, os.getpid()))
        os.abort()

    assert forked(abort) == -6


@needs_landlock
def test_landlock_leaves_out_paths_that_are_not_there(tmp_path):
    def body() -> int:
        landlock.restrict(["/usr", str(tmp_path / "not-there")], [str(tmp_path)])
        (tmp_path / "made").write_text("x")
        try:
            Path("/etc/passwd").read_text()
        except PermissionError:
            return 0
        return 1

    assert forked(body) == 0
    assert (tmp_path / "made").read_text() == "x"


def test_where_the_kernel_has_no_landlock_the_answer_says_so(monkeypatch):
    monkeypatch.setattr(landlock, "abi_version", lambda: 0)
    assert landlock.restrict(["/usr"]) is False
    assert support().missing.startswith("Landlock")


def test_untrusted_code_is_refused_without_containment():
    require_support(Support(1, True))
    for found, word in ((Support(0, True), "Landlock"), (Support(4, False), "seccomp"), (Support(0, False), " and ")):
        with pytest.raises(MissingToolError, match=word) as caught:
            require_support(found)
        assert "Linux kernel" in caught.value.expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filters_are_well_formed_programs(machine):
    """Every jump of a filter ends inside it, behind every path stands a return, and it fits the kernel's limit."""
    for program in (seccomp.only(COMPUTING, 1, machine), seccomp.without(NEVER_COMPILING, machine)):
        rows = [program[i : i + 8] for i in range(0, len(program), 8)]
        assert len(rows) < 4096
        assert rows[-1][0] == 0x06
        for at, row in enumerate(rows):
            if row[0] & 0x07 == 0x05:
                assert at + 1 + max(row[2], row[3]) < len(rows)


def test_no_call_has_two_numbers_and_no_number_two_calls():
    for column in (0, 1):
        numbers = [pair[column] for pair in NUMBERS.values() if pair[column] is not None]
        assert len(numbers) == len(set(numbers))
    assert not set(COMPUTING) & set(NEVER_COMPILING)
