"""An OpenAI-compatible server on loopback that behaves, or misbehaves, as a script says; it counts what it charges."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


@dataclass
class Reply:
    """One reply. status: of HTTP. text: the answer. events: raw lines instead. headers: more of them."""

    text: str = ""
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    finish: str | None = "stop"
    usage: bool = True
    cut_after: int | None = None  # events, then the connection breaks
    drip_s: float = 0.0  # between two bytes
    wait_s: float = 0.0  # before anything
    ids: bool = True
    pieces: int = 40  # characters an event


Script = Callable[[Request, int], Reply]


class ScriptedServer:
    """Serves ``script(request, number)``; ``requests``: what came; ``charged``: tokens that it told in full."""

    def __init__(self, script: Script) -> None:
        self.script, self.requests, self.keys = script, list[Request](), list[str]()
        self.charged = [0, 0]
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                with contextlib.suppress(OSError):
                    outer._serve(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        request = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.keys.append(handler.headers.get("authorization", ""))
        reply = self.script(request, number)
        time.sleep(reply.wait_s)
        if reply.status != 200 or reply.body is not None:
            self._plain(handler, reply, reply.body or b"{}")
        elif request.get("stream"):
            self._stream(handler, request, reply)
        else:
            message = {"role": "assistant", "content": reply.text}
            choice = {"index": 0, "message": message, "finish_reason": reply.finish}
            body = {"id": "x", "object": "chat.completion", "choices": [choice], "usage": self._usage(request, reply)}
            self._plain(handler, reply, json.dumps(body).encode())

    def _plain(self, handler: BaseHTTPRequestHandler, reply: Reply, body: bytes) -> None:
        handler.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _stream(self, handler: BaseHTTPRequestHandler, request: Request, reply: Reply) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        for number, event in enumerate(self._events(request, reply)):
            if reply.cut_after is not None and number >= reply.cut_after:
                handler.close_connection = True
                return
            if reply.drip_s:
                for byte in event:
                    handler.wfile.write(bytes([byte]))
                    handler.wfile.flush()
                    time.sleep(reply.drip_s)
            else:
                handler.wfile.write(event)
                handler.wfile.flush()
        handler.close_connection = True

    def _events(self, request: Request, reply: Reply) -> Iterator[bytes]:
        for at in range(0, max(len(reply.text), 1), reply.pieces):
            delta = {"content": reply.text[at : at + reply.pieces]}
            data: Any = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            data |= {"id": "right", "model": request["model"]} if reply.ids else {"id": 7, "model": "another"}
            yield f"data: {json.dumps(data)}\n\n".encode()
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]}
        yield f"data: {json.dumps(end)}\n\n".encode()
        if request.get("stream_options") and reply.usage:
            yield f"data: {json.dumps({'choices': [], 'usage': self._usage(request, reply)})}\n\n".encode()
        yield b"data: [DONE]\n\n"

    def _usage(self, request: Request, reply: Reply) -> dict[str, int]:
        asked = sum(len(m["content"].split()) for m in request["messages"])
        said = len(reply.text.split())
        with self._lock:
            self.charged[0] += asked
            self.charged[1] += said
        return {"prompt_tokens": asked, "completion_tokens": said}


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI-compatible servers tell it."""
    return Reply(status=status, body=json.dumps({"error": {"message": message}}).encode(), headers=headers)
