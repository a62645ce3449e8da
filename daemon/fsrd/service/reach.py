"""Whether the head of a Ray cluster answers, asked without Ray: a run that begins while it does not would fail."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from time import monotonic

from fsr.workers.cluster import ClusterName

ANSWER_S, AGAIN_S = 2.0, 10.0


class Reach:
    """Remembers for a while who answered. Any thread may ask."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, str]] = {}

    def against(self, ray: str) -> str:
        """Why nothing is to run on a cluster ('head:6379#H200') now, in words; '' when it answers, for 'auto', and for
        no cluster."""
        address = ClusterName.parse(ray).address.removeprefix("ray://")
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            return ""
        with self._lock:
            since, why = self._known.get(address, (float("-inf"), ""))
            if self._clock() - since > AGAIN_S:
                why = "" if _answers(host.strip("[]"), int(port)) else f"nobody answers at {address}"
                self._known[address] = self._clock(), why
            return why


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), ANSWER_S).close()
    except (OSError, OverflowError):
        return False
    return True
