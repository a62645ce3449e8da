"""Messages between a process and its confined child: a length, JSON, and open files beside it."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct("<II")  # bytes of JSON, number of files
_MAX_FILES = 4
_MAX_BYTES = 1 << 30  # of one message: what a child says is not believed, its length neither


def send(connection: socket.socket, message: Any, files: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError when the other side is gone."""
    body = json.dumps(message, separators=(",", ":")).encode()
    header = _HEADER.pack(len(body), len(files))
    if files:
        socket.send_fds(connection, [header], list(files))
    else:
        connection.sendall(header)
    connection.sendall(body)


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """One message and the files that came with it (the caller closes them).

    Raises EOFError when the other side has closed, TimeoutError past the connection's time-out."""
    header, files, _, _ = socket.recv_fds(connection, _HEADER.size, _MAX_FILES)
    try:
        header += _exactly(connection, _HEADER.size - len(header))
        length, _ = _HEADER.unpack(header)
        if length > _MAX_BYTES:
            raise EOFError(f"a message of {length} bytes")
        return json.loads(_exactly(connection, length)), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise EOFError("the other side has closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
