"""Who may ask: on the loopback address nobody without the token, and no page of another site at all.

The token travels in the Authorization header, never in a cookie: a page of another site cannot make a browser send it.
Requests whose Host is not this service's are refused, so that a name that was made to resolve to 127.0.0.1 (DNS
rebinding) leads nowhere. The Unix socket lies in a folder that only its user may enter, and needs no token.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
     b"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)  # fmt: skip
GUARDED = ("/api/", "/metrics")
SAME_SITE = {"same-origin", "none"}


class Guarded:
    """An application behind these rules. ``token``: None where the socket itself says who asks."""

    def __init__(self, app: ASGIApp, token: str | None, port: int = 0) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers) if self._token is not None else None
        if refusal is None:
            await self._app(scope, receive, with_headers)
            return
        status, says = refusal
        more = [(b"www-authenticate", b"Bearer")] if status == 401 else []
        body = msgspec.json.encode({"error": says})
        start = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
        await with_headers({"type": "http.response.start", "status": status, "headers": start})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this service is reached as 127.0.0.1 or localhost only"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return 403, "the request comes from a page of another site"
        if headers.get("sec-fetch-site", "none") not in SAME_SITE:
            return 403, "the request comes from a page of another site"
        if not scope["path"].startswith(GUARDED):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        assert self._token is not None
        if kind.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), self._token.encode()):
            return 401, "the token is missing or wrong; fsr daemon status shows the page's address with it"
        return None
