"""NVRTC in a confined process of its own: ``python nvrtc_server.py LIBRARY MEMORY_BYTES READABLE... CONNECTION``.

A compiler is attacked through what it reads, and a macro of a few lines makes it ask for all the memory there is. So
this process gives up everything before the first candidate comes: it reads the toolkit and writes nothing, starts no
process, opens no socket, has a limit of addresses, and a timer for every compile. Standard library alone.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OUT_OF_MEMORY = 1  # NVRTC_ERROR_OUT_OF_MEMORY


class Nvrtc:
    """The library's functions on one program at a time."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)

    def version(self) -> tuple[int, int]:
        """For example (13, 0)."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answers ``log``, ``status`` (0: compiled), and then ``symbols`` by entry and ``cubin`` in base 64; ``bad``
        names an entry that is no name expression."""
        program, count = ctypes.c_void_p(), len(request["headers"])
        texts, names = _texts(request["headers"].values()), _texts(request["headers"])
        source, file = request["source"].encode(), request["file"].encode()
        self._library.nvrtcCreateProgram(ctypes.byref(program), source, file, count, texts, names)
        try:
            for entry in request["entries"]:
                if self._library.nvrtcAddNameExpression(program, entry.encode()):
                    return {"bad": entry}
            options = request["options"]
            status = self._library.nvrtcCompileProgram(program, len(options), _texts(options))
            answer = {"status": status, "log": self._bytes(program, "ProgramLog").decode(errors="replace")}
            if status == 0:
                answer["symbols"] = {entry: self._lowered(program, entry) for entry in request["entries"]}
                answer["cubin"] = base64.b64encode(self._bytes(program, "CUBIN")).decode()
            return answer
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def _lowered(self, program: ctypes.c_void_p, entry: str) -> str:
        name = ctypes.c_char_p()
        self._library.nvrtcGetLoweredName(program, entry.encode(), ctypes.byref(name))
        return (name.value or b"").decode()


def _texts(texts: Any) -> Any:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def serve(nvrtc: Nvrtc, connection: socket.socket, memory_bytes: int) -> None:
    """Compile what is asked until the parent closes the connection. An answer that says ``spent`` is the last: the
    compiler keeps memory from one program to the next, and a fresh process is cheap."""
    from fsr.sandbox.channel import receive, send

    addresses = os.open("/proc/self/statm", os.O_RDONLY)
    from fsr.sandbox.confine import confine_execution

    confine_execution(sys.argv[3:-1])
    send(connection, {"version": nvrtc.version()})
    while True:
        try:
            request, _ = receive(connection)
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_PROF, request["timeout_s"] + 1.0)  # a parent that died cannot kill
        try:
            answer = nvrtc.compile(request)
        except MemoryError:
            answer = {"status": _OUT_OF_MEMORY, "log": "out of memory"}
        signal.setitimer(signal.ITIMER_PROF, 0)
        used = int(os.pread(addresses, 100, 0).split()[0]) * resource.getpagesize()
        answer["spent"] = answer.get("status") == _OUT_OF_MEMORY or used > memory_bytes // 2
        send(connection, answer)


def main() -> None:
    """Load the library, give up all else, serve."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))  # noqa: PTH100, PTH120
    from fsr.sandbox.channel import send
    from fsr.sandbox.confine import limit
    from fsr.sandbox.parent import die_with_parent

    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    connection = socket.socket(fileno=int(sys.argv[-1]))
    try:
        nvrtc = Nvrtc(sys.argv[1])
    except OSError as error:
        return send(connection, {"missing": str(error)})
    limit(resource.RLIMIT_AS, int(sys.argv[2]))
    limit(resource.RLIMIT_FSIZE, 0)
    with contextlib.suppress(OSError):  # the parent was killed while this compiled
        serve(nvrtc, connection, int(sys.argv[2]))
    return None


if __name__ == "__main__":
    main()
