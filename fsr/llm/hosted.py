"""Models behind an OpenAI-compatible end point: hosted services, vLLM, Ollama, llama.cpp's server."""

from __future__ import annotations

import importlib
import random
import threading
import time
from dataclasses import dataclass
from typing import Any

from fsr.errors import MissingToolError
from fsr.llm.capabilities import Capabilities, Remembered
from fsr.llm.completion import Body
from fsr.llm.exchange import Answer, ModelFailure, Prompt
from fsr.llm.grammar import grammar_of
from fsr.llm.keys import redacted
from fsr.llm.ledger import estimated_tokens
from fsr.llm.named import ModelSpec

TRIES = 4
CONNECT_S, READ_S = 10.0, 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
TEMPERATURE = 0.8
FINAL = {401: "the key is refused", 403: "access is refused", 404: "there is no such model or path"}
ADAPTABLE = (400, 422)
AGAIN = (408, 409, 425, 429)


class _Again(Exception):  # noqa: N818
    """A refusal that may not last; after_s: when to ask again, if the server said so."""

    def __init__(self, failure: ModelFailure, after_s: float | None = None) -> None:
        super().__init__(failure.detail)
        self.failure, self.after_s = failure, after_s


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a question is tried. pause_s: before the second try; it doubles."""

    tries: int = TRIES
    pause_s: float = FIRST_PAUSE_S
    read_s: float = READ_S


class Hosted:
    """One hosted model. The key goes into the client's header and nowhere else; no message repeats it."""

    def __init__(self, spec: ModelSpec, key: str, remembered: Remembered, patience: Patience | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingToolError(
                "the package openai is not installed", expected="it, for hosted models", where="--llm",
                fix="pip install 'fsr[llm]'",
            ) from None  # fmt: skip
        self.spec, self.name = spec, spec.name
        self._openai: Any = openai
        self._key, self._remembered, self._patience = key, remembered, patience or Patience()
        self._can = remembered.get(self._endpoint)
        self._lock = threading.Lock()
        self._gate = threading.Semaphore(spec.concurrency)
        # Redirects are not followed: they would take the key and the source to a host that nobody named.
        timeout = self._openai.Timeout(self._patience.read_s, connect=CONNECT_S)
        client = self._openai.DefaultHttpxClient(timeout=timeout, follow_redirects=False)
        # The HTTP library beneath has had two names; what it raises while a body is read is not translated.
        beneath = next(kind.__module__ for kind in type(client).__mro__ if kind.__module__.startswith("httpx"))
        self._http: Any = importlib.import_module(beneath.partition(".")[0])
        self._client: Any = self._openai.OpenAI(
            api_key=key or "none", base_url=spec.url, max_retries=0, timeout=timeout, http_client=client
        )

    @property
    def _endpoint(self) -> str:
        return f"{self.spec.url}#{self.spec.model}"

    @property
    def capabilities(self) -> Capabilities:
        """What is known of the end point."""
        return self._can

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, prompt: Prompt, cancelled: threading.Event) -> Answer:
        """The answer; tries again what may succeed another time. Raises ModelFailure."""
        with self._gate:
            started = time.monotonic()
            deadline = started + self.spec.timeout_s
            tries = 0
            while True:
                if cancelled.is_set():
                    raise ModelFailure("cancelled", "the run is over")
                can = self._can
                try:
                    return self._once(prompt, can, cancelled, started, deadline)
                except _Again as again:
                    tries += 1
                    pause = again.after_s
                    if pause is None:
                        pause = self._patience.pause_s * 2 ** (tries - 1) * random.uniform(0.5, 1.0)
                    pause = min(pause, LONGEST_PAUSE_S)
                    if tries >= self._patience.tries or time.monotonic() + pause > deadline:
                        raise again.failure from None
                    cancelled.wait(pause)
                except _Refused as refused:
                    self._adapt(can, refused, bool(prompt.fields))

    def _adapt(self, can: Capabilities, refused: _Refused, structured: bool) -> None:
        """Ask for less from now on. Raises the refusal where there is nothing that could be left out."""
        with self._lock:
            if self._can != can:  # another thread has learned already
                return
            less = can.next_form() if refused.form else can.without(refused.detail, structured=structured)
            if less is None or less == can:
                raise ModelFailure("refused", refused.detail) from None
            self._can = less
        self._remembered.put(self._endpoint, less)

    def _once(
        self, prompt: Prompt, can: Capabilities, cancelled: threading.Event, started: float, deadline: float
    ) -> Answer:
        openai, body = self._openai, None
        try:
            create = self._client.chat.completions.with_streaming_response.create
            with create(**self._request(prompt, can)) as response:
                body = Body("event-stream" in response.headers.get("content-type", ""))
                for part in response.iter_bytes():
                    body.feed(part)
                    if cancelled.is_set():
                        raise ModelFailure("cancelled", "the run is over")
                    if time.monotonic() > deadline:
                        raise ModelFailure("time-out", f"no whole answer in {self.spec.timeout_s:g} s")
                    if body.done:
                        break
                body.end()
        except openai.APITimeoutError:
            raise _Again(ModelFailure("time-out", f"no answer in {self._patience.read_s:g} s")) from None
        except openai.APIConnectionError as fault:
            cause = self._clean(str(fault.__cause__ or fault))
            raise _Again(ModelFailure("connection", cause)) from None
        except openai.APIStatusError as fault:
            raise self._status(fault, can, structured=bool(prompt.fields)) from None
        except self._http.TimeoutException:
            raise ModelFailure("time-out", f"the answer stopped for {self._patience.read_s:g} s") from None
        except self._http.HTTPError as fault:
            if body is None or not body.text:
                raise _Again(ModelFailure("connection", self._clean(str(fault)))) from None
        except ModelFailure as failure:
            raise ModelFailure(failure.kind, self._clean(failure.detail), final=failure.final) from None
        except openai.OpenAIError as fault:
            raise ModelFailure("unreadable", self._clean(str(fault))) from None
        assert body is not None
        return self._answer(prompt, body, time.monotonic() - started)

    def _answer(self, prompt: Prompt, body: Body, seconds: float) -> Answer:
        counted = body.tokens_in is not None and body.tokens_out is not None
        tokens_in = body.tokens_in if body.tokens_in is not None else estimated_tokens(prompt.system + prompt.user)
        tokens_out = body.tokens_out if body.tokens_out is not None else estimated_tokens(body.text)
        stop = {"stop": "stop", "length": "length", "": "stop" if body.done else "cut"}.get(body.stop, "stop")
        dollars = self.spec.dollars(tokens_in, tokens_out)
        text = self._clean(body.text)
        return Answer(text, tokens_in, tokens_out, round(seconds, 3), stop, counted, dollars)

    def _status(self, fault: Any, can: Capabilities, *, structured: bool) -> Exception:
        code, words = fault.status_code, self._clean(str(fault.message))[:600]
        if code in FINAL:
            return ModelFailure("refused", f"{FINAL[code]} ({code}): {words}", final=True)
        if 300 <= code < 400:
            return ModelFailure("refused", f"the end point redirects elsewhere ({code})", final=True)
        if code in ADAPTABLE:
            return _Refused(words)
        if code == 500 and structured and can.form == "json_schema":  # llama_cpp.server's way to refuse a schema
            return _Refused(words, form=True)
        if code in AGAIN or code >= 500:
            kind = "rate limit" if code == 429 else "server"
            return _Again(ModelFailure(kind, f"{code}: {words}"), _retry_after(fault.response.headers))
        return ModelFailure("refused", f"{code}: {words}")

    def _request(self, prompt: Prompt, can: Capabilities) -> dict[str, Any]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        if not can.system:
            messages = [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]
        request: dict[str, Any] = {"model": self.spec.model, "messages": messages, "stream": can.stream}
        if can.limit:
            request[can.limit] = prompt.most_tokens
        if can.temperature:
            request["temperature"] = TEMPERATURE
        if can.seed:
            request["seed"] = prompt.sample
        if can.stream and can.usage:
            request["stream_options"] = {"include_usage": True}
        form = prompt.form()
        if form is not None and can.form == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": form}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form is not None and can.form == "json_object":
            request["response_format"] = {"type": "json_object"}
            request["extra_body"] = {"response_format": {"type": "json_object", "schema": form}}
        elif form is not None and can.form == "grammar":
            request["extra_body"] = {"grammar": grammar_of(prompt.fields)}
        return request

    def _clean(self, text: str) -> str:
        return redacted(text, self._key)


class _Refused(Exception):  # noqa: N818
    """The end point does not take something that was asked. form: the form of the answer, whatever the words say."""

    def __init__(self, detail: str, *, form: bool = False) -> None:
        super().__init__(detail)
        self.detail, self.form = detail, form


def _retry_after(headers: Any) -> float | None:
    try:
        return max(0.0, float(headers.get("retry-after")))
    except (TypeError, ValueError):
        return None
