"""Code for the CPU that slips past every check of its text: what it can do from inside the host device's child.

The kernels here make system calls by themselves, as inline assembly or a constructor in a candidate would.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role
from fsr.sandbox.confine import support

pytestmark = pytest.mark.skipif(
    not support().complete or platform.machine() != "x86_64", reason="needs Landlock and seccomp, and x86-64 assembly"
)

CALL = """
#undef __asm__
static long call(long number, long a, long b, long c, long d = 0) {
  long answer;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return answer;
}
"""
OPEN, SOCKET, CONNECT, KILL, FORK, EXECVE, PTRACE, CHMOD, UNLINK, TRUNCATE = 2, 41, 42, 62, 57, 59, 101, 90, 87, 76
OPENAT, CREAT, TGKILL, PRLIMIT, VM_WRITE, IO_URING, MOUNT = 257, 85, 234, 302, 311, 425, 165
AT_FDCWD, WRITE_CREATE = -100, 0o101


def run(source: str, size: int = 32) -> list[int]:
    """What a kernel ``k(long* out)`` wrote."""
    one = ("1", "1", "1")
    image = HostToolchain().compile(Candidate(CALL + source, Plan((Launch("k", one, one, "0", ()),))))
    assert isinstance(image, Image), image
    device = open_host_device()
    try:
        launch = ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("out",))
        with device.prepare(image, [launch], [Buffer("out", np.full(size, 77, np.int64), Role.OUT)]) as prepared:
            prepared.run()
            return [int(v) for v in prepared.read()["out"]]
    finally:
        device.close()


def test_a_kernel_cannot_leave_the_child(tmp_path):
    file = tmp_path / "precious"
    file.write_text("untouched")
    victim = subprocess.Popen(["sleep", "60"])
    path, new = f'(long)"{file}"', f'(long)"{tmp_path / "new"}"'
    tries = [
        f"call({OPENAT}, {AT_FDCWD}, {path}, 0)",  # read
        f"call({OPENAT}, {AT_FDCWD}, {path}, 1)",  # write
        f"call({OPENAT}, {AT_FDCWD}, {new}, {WRITE_CREATE}, 0666)",
        f"call({OPEN}, {path}, 1, 0)", f"call({CREAT}, {new}, 0666, 0)",
        f"call({CHMOD}, {path}, 0, 0)", f"call({UNLINK}, {path}, 0, 0)", f"call({TRUNCATE}, {path}, 0, 0)",
        f"call({SOCKET}, {int(socket.AF_INET)}, {int(socket.SOCK_STREAM)}, 0)",
        f"call({SOCKET}, {int(socket.AF_UNIX)}, {int(socket.SOCK_STREAM)}, 0)",
        f"call({KILL}, {os.getpid()}, 9, 0)", f"call({KILL}, {victim.pid}, 9, 0)", f"call({KILL}, -1, 9, 0)",
        f"call({TGKILL}, {victim.pid}, {victim.pid}, 9)",
        f"call({FORK}, 0, 0, 0)", f'call({EXECVE}, (long)"/bin/true", 0, 0)', f"call({PTRACE}, 16, {victim.pid}, 0)",
        f"call({PRLIMIT}, {victim.pid}, 0, 0)", f"call({VM_WRITE}, {victim.pid}, 0, 0)",
        f"call({IO_URING}, 4, 0, 0)", f"call({MOUNT}, 0, 0, 0)",
    ]  # fmt: skip
    body = "\n".join(f"  out[{i}] = {attempt};" for i, attempt in enumerate(tries))
    try:
        answers = run(f"__global__ void k(long* out) {{\n{body}\n}}")
        assert [(t, a) for t, a in zip(tries, answers, strict=False) if a >= 0] == []
        assert answers[len(tries)] == 77
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    assert file.read_text() == "untouched"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_constructor_runs_contained(tmp_path):
    """It runs when the image is loaded: before any launch, and after the child has given up its rights."""
    new = tmp_path / "new"
    source = f"""
    static long seen[2] = {{55, 55}};
    __attribute__((constructor)) static void early() {{
      seen[0] = call({OPENAT}, {AT_FDCWD}, (long)"{new}", {WRITE_CREATE}, 0666);
      seen[1] = call({SOCKET}, 2, 1, 0);
    }}
    __global__ void k(long* out) {{ out[0] = seen[0]; out[1] = seen[1]; }}"""
    file, socket_ = run(source)[:2]
    assert file < 0
    assert file != 55
    assert socket_ < 0
    assert not new.exists()


def test_the_child_sees_no_secret_of_the_environment():
    """The environment of the child is what its process was started with: /proc/<pid>/environ."""
    code = (
        "from fsr.backends.host.device import open_host_device\nfrom pathlib import Path\n"
        "d = open_host_device(); d.generation\nprint(Path(f'/proc/{d._child.pid}/environ').read_bytes())\nd.close()"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "OPENAI_API_KEY": "sk-secret"}, capture_output=True,
        text=True, timeout=200, check=True,
    ).stdout  # fmt: skip
    assert "PATH" in told
    assert "sk-secret" not in told
