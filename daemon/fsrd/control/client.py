"""Asks the service of a home over its Unix socket; standard library alone."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from fsr.errors import FsrError, UsageError
from fsrd.service.instance import Place

ANSWER_S = 30.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_S)
        self.sock.connect(self._path)


def ask(place: Place, method: str, path: str, body: Any = None) -> Any:
    """The JSON answer of the service. Raises UsageError when it does not run, FsrError with what it refused."""
    connection = _UnixConnection(str(place.socket))
    sent = None if body is None else json.dumps(body)
    try:
        connection.request(method, path, sent, {"content-type": "application/json"} if sent is not None else {})
        answer = connection.getresponse()
        told = json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException) as fault:
        if place.running() is None:
            raise not_running(place) from None
        raise FsrError(f"the daemon does not answer: {fault}", where=str(place.socket), fix="fsr daemon logs") from None
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise FsrError(f"the daemon refused: {told.get('error', answer.status)}", where=path)
    return told


def not_running(place: Place) -> UsageError:
    """The error for a home without a service."""
    return UsageError("the daemon does not run", where=str(place.folder), fix="fsr daemon start FOLDER begins it")
