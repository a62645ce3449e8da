"""Serves the application on the Unix socket and on the loopback address, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from fsr.errors import UsageError
from fsrd.http.security import Guarded
from fsrd.service.instance import Place

LOOPBACK = "127.0.0.1"
LEAVING_S = 2


class Server:
    """``address``: of the page, with the token after the '#', where it is sent to nobody; '' without TCP."""

    def __init__(self, app: ASGIApp, place: Place, port: int | None) -> None:
        self._place = place
        self._sockets = [_unix(place)]
        apps = [Guarded(app, None)]
        self.address = ""
        if port is not None:
            self._sockets.append(_loopback(port))
            real, token = self._sockets[1].getsockname()[1], place.secret()
            apps.append(Guarded(app, token, real))
            self.address = f"http://{LOOPBACK}:{real}/#{token}"
        self._servers = [uvicorn.Server(_config(guarded)) for guarded in apps]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="http", daemon=True)

    def start(self) -> None:
        """Begin to answer; how to reach it is written down for the user's other programs."""
        self._thread.start()
        draft = self._place.address.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.address)
        draft.replace(self._place.address)

    @property
    def alive(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Answer what was asked, and end."""
        for server in self._servers:
            server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(LEAVING_S + 5.0)
        for path in (self._place.address, self._place.socket):
            path.unlink(missing_ok=True)
        for sock in self._sockets:
            sock.close()

    async def _serve(self) -> None:
        await asyncio.gather(
            *(server.serve([sock]) for server, sock in zip(self._servers, self._sockets, strict=True))
        )  # fmt: skip


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=LEAVING_S,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=32 << 10, limit_concurrency=64,
        ws="none",
    )  # fmt: skip


def _unix(place: Place) -> socket.socket:
    """The Unix socket; none is in its place, for the service holds the lock of it."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old = os.umask(0o177)
    try:
        bound.bind(str(place.socket))
    except OSError as fault:
        raise UsageError(
            f"the Unix socket cannot be made: {fault}", where=str(place.socket), fix="point FSR_HOME at a shorter path"
        ) from None
    finally:
        os.umask(old)
    bound.listen()
    return bound


def _loopback(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
    except OSError as fault:
        raise UsageError(
            f"port {port} cannot be used: {fault.strerror}", where="daemon.toml, [http] port",
            fix="take another, or 0 for any that is free",
        ) from None  # fmt: skip
    bound.listen()
    return bound
