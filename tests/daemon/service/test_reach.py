"""A cluster is asked through its socket: one that is away is left alone, and found again."""

from __future__ import annotations

import socket

from fsrd.service.reach import AGAIN_S, Reach


def test_a_head_that_goes_and_comes_back() -> None:
    now = [0.0]
    reach = Reach(lambda: now[0])
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        assert reach.against(f"127.0.0.1:{port}#H200") == ""
    assert reach.against(f"127.0.0.1:{port}") == ""  # as it was a moment ago
    now[0] += 2 * AGAIN_S
    assert reach.against(f"127.0.0.1:{port}#L4") == f"nobody answers at 127.0.0.1:{port}"
    with socket.create_server(("127.0.0.1", port)):
        now[0] += 2 * AGAIN_S
        assert reach.against(f"127.0.0.1:{port}") == ""


def test_what_has_no_address_is_not_asked() -> None:
    assert [Reach().against(ray) for ray in ("", "auto", "auto#H200", "local")] == [""] * 4
