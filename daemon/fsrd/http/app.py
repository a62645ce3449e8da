"""The ASGI application: the API's endpoints, events as they come, metrics, and the files of the web page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from fsr.errors import FsrError
from fsrd.http.endpoints import ENDPOINTS, Endpoint, Refused
from fsrd.http.metrics import metrics
from fsrd.http.openapi import document
from fsrd.service.service import Service

PAGE = Path(__file__).parents[1] / "page" / "static"
MOST_BODY_BYTES = 64 << 10
THREADS = 4
EVENT_S, KEEP_ALIVE_S = 0.25, 15.0


def application(service: Service) -> Starlette:
    """The application of a service."""
    limiter = anyio.CapacityLimiter(THREADS)

    async def openapi(_: Request) -> Response:
        return _json(document(ENDPOINTS))

    async def scrape(_: Request) -> Response:
        text = await anyio.to_thread.run_sync(metrics, service, limiter=limiter)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def events(request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        first = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else service.bus.last
        return StreamingResponse(_events(service, first), media_type="text/event-stream", headers=NO_STORE)

    paths: dict[str, dict[str, Answering]] = {
        "/api/openapi.json": {"GET": openapi}, "/api/events": {"GET": events}, "/metrics": {"GET": scrape},
    }  # fmt: skip
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = _answering(service, endpoint, limiter)
    routes: list[BaseRoute] = [Route(path, _ByMethod(answers)) for path, answers in paths.items()]
    if PAGE.is_dir():
        routes.append(Mount("/", StaticFiles(directory=PAGE, html=True)))
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_fault, Exception: _fault})


NO_STORE = {"cache-control": "no-store"}


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, NO_STORE | (headers or {}), "application/json")


async def _http_fault(_: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    headers = dict(fault.headers or {})
    if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:  # RFC 9110, 15.5.6; files of the page say nothing
        headers.setdefault("Allow", "GET, HEAD")
    return _json({"error": fault.detail}, fault.status_code, headers)


async def _fault(_: Request, fault: Exception) -> Response:
    return _json({"error": f"a fault of fsr itself: {type(fault).__name__}"}, 500)


Answering = Callable[[Request], Awaitable[Response]]


class _ByMethod:
    """An application for one path, whatever is asked of it: what is not answered is refused with what may be asked.

    Routes that name their methods would leave the others to the files of the page, whose Allow is not theirs."""

    def __init__(self, answers: Mapping[str, Answering]) -> None:
        self._answers = dict(answers)
        if "GET" in answers:
            self._answers["HEAD"] = answers["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = self._answers.get(scope["method"])
        if answer is None:
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(sorted(self._answers))})
        await (await answer(Request(scope, receive, send)))(scope, receive, send)


def _answering(service: Service, endpoint: Endpoint, limiter: anyio.CapacityLimiter) -> Answering:
    async def answer(request: Request) -> Response:
        try:
            path: Any = msgspec.convert(request.path_params, endpoint.in_path, strict=False)
            given = await _given(request, endpoint)
            return _json(await anyio.to_thread.run_sync(endpoint.handler, service, path, given, limiter=limiter))
        except Refused as refusal:
            return _json({"error": refusal.says}, refusal.status)
        except msgspec.MsgspecError as fault:
            return _json({"error": str(fault)}, 400)
        except FsrError as fault:
            return _json({"error": str(fault)}, 409)

    return answer


async def _given(request: Request, endpoint: Endpoint) -> Any:
    """The fields of the query or the body. Raises msgspec's errors and Refused."""
    if endpoint.method == "GET":
        query = request.query_params
        if len(query) != len(query.multi_items()):
            raise Refused(400, "a field is given twice")
        return msgspec.convert(dict(query), endpoint.given, strict=False)
    if not endpoint.given.__struct_fields__:  # type: ignore[attr-defined]
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body is to be application/json")
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY_BYTES:
                raise Refused(413, f"the body is longer than {MOST_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise Refused(400, "the body ended early") from None
    return msgspec.json.decode(body, type=endpoint.given)


async def _events(service: Service, number: int) -> AsyncIterator[bytes]:
    """Server-sent events: what the service's bus tells, with its numbers; a comment now and then keeps it open."""
    yield b"retry: 1000\n\n"
    quiet_s = 0.0
    while True:
        found = service.bus.after(number, 0.0)
        if found is None:
            return
        for number, event in found:  # the number goes on from the last one sent
            yield f"id: {number}\nevent: {event['kind']}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"
        quiet_s = 0.0 if found else quiet_s + EVENT_S
        if quiet_s >= KEEP_ALIVE_S:
            quiet_s = 0.0
            yield b": \n\n"
        await asyncio.sleep(EVENT_S)
