"""A hosted model, against a server that does what a script says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fsr.llm.capabilities import Remembered
from fsr.llm.exchange import Answer, Field, ModelFailure, Prompt
from fsr.llm.hosted import Hosted, Patience
from fsr.llm.named import ModelSpec
from tests.llm.server import Reply, Request, Script, ScriptedServer, refusal

pytest.importorskip("openai", reason="the package openai is not installed")
KEY = "sk-secret-0123456789"
FREE = Prompt("coder", "whole", 1, "system words", "user words")
FORMED = Prompt("judge", "plan", 1, "system", "user", (Field("move", ("1", "2")),))
Ask = Callable[..., Answer]


class Bench:
    """A server, and the model behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.open = folder, list[ScriptedServer | Hosted]()

    def model(self, script: Script, timeout_s: float = 5.0) -> tuple[ScriptedServer, Hosted]:
        server = ScriptedServer(script)
        spec = ModelSpec("m@host", url=server.url, model="m", timeout_s=timeout_s, dollars_in=1.0, dollars_out=10.0)
        model = Hosted(spec, KEY, Remembered(self.folder / "endpoints.json"), Patience(pause_s=0.01, read_s=0.5))
        self.open += [model, server]
        return server, model


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    for one in found.open:
        one.close()


def ask(model: Hosted, prompt: Prompt = FREE, cancelled: threading.Event | None = None) -> Answer:
    return model.ask(prompt, cancelled or threading.Event())


def test_an_answer_comes_with_the_servers_own_counts_and_its_price(bench: Bench) -> None:
    server, model = bench.model(lambda request, n: Reply("two words " * 30))
    answer = ask(model)
    assert (answer.text, answer.stop, answer.counted) == ("two words " * 30, "stop", True)
    assert [answer.tokens_in, answer.tokens_out] == server.charged == [4, 60]
    assert answer.dollars == pytest.approx((4 * 1.0 + 60 * 10.0) / 1e6)
    assert server.requests[0]["max_completion_tokens"] == FREE.most_tokens
    assert server.keys == [f"Bearer {KEY}"]


def old_server(request: Request, number: int) -> Reply:
    """Takes max_tokens only, no seed, no temperature, no stream options, and no form but any JSON object."""
    for name in ("max_completion_tokens", "temperature", "seed", "stream_options"):
        if name in request:
            return refusal(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    form = request.get("response_format", {}).get("type")
    if form == "json_schema":
        return refusal(400, "This model does not support response_format json_schema")
    return Reply('{"move": "2"}')


def test_what_an_end_point_can_do_is_found_out_once_and_remembered(bench: Bench) -> None:
    server, model = bench.model(old_server)
    assert ask(model, FORMED).text == '{"move": "2"}'
    first = len(server.requests)
    assert first > 3
    ask(model, FORMED)
    assert len(server.requests) == first + 1
    again = Hosted(model.spec, KEY, Remembered(bench.folder / "endpoints.json"))
    assert ask(again, FORMED).text == '{"move": "2"}'
    again.close()
    assert len(server.requests) == first + 2
    assert (model.capabilities.limit, model.capabilities.form) == ("max_tokens", "json_object")


def test_a_server_that_ends_with_500_at_a_schema_is_asked_for_less(bench: Bench) -> None:
    def script(request: Request, number: int) -> Reply:
        form = request.get("response_format", {}).get("type")
        if form in ("json_schema", "json_object"):
            return refusal(500 if form == "json_schema" else 400, "response_format")
        return Reply('{"move": "1"}' if "grammar" in request else "no")

    _, model = bench.model(script)
    assert ask(model, FORMED).text == '{"move": "1"}'
    assert model.capabilities.form == "grammar"


def test_rate_limits_and_server_faults_are_tried_again(bench: Bench) -> None:
    replies = [refusal(429, "slow down", **{"retry-after": "0.05"}), refusal(503, "busy"), Reply("fine")]
    server, model = bench.model(lambda request, n: replies[n])
    assert ask(model).text == "fine"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(429, "slow down"), "rate limit"),
        (refusal(500, "oops"), "server"),
        (refusal(401, f"Incorrect API key provided: {KEY}"), "refused"),
        (refusal(404, "no such model"), "refused"),
        (refusal(302, "elsewhere", location="http://127.0.0.1:9/v1"), "refused"),
        (Reply("x" * 3_000_000, pieces=100_000), "too long"),
        (Reply(body=b"<html>not JSON</html>"), "unreadable"),
        (Reply(body=b"[1, 2"), "unreadable"),
        (Reply(body=b"[1, 2]"), "unreadable"),
        (Reply(body=b'{"error": {"message": "quota"}}'), "server"),
        (Reply("some text", wait_s=1.0), "time-out"),
        (Reply("some text", drip_s=0.02, pieces=1), "time-out"),
    ],
    ids=["429", "500", "401", "404", "redirect", "huge", "html", "torn", "list", "error", "silent", "drip"],
)  # fmt: skip
def test_no_answer_is_an_ordinary_failure_that_repeats_no_key(bench: Bench, reply: Reply, kind: str) -> None:
    _, model = bench.model(lambda request, n: reply, timeout_s=1.2 if kind == "time-out" else 120.0)
    with pytest.raises(ModelFailure) as failure:
        ask(model)
    assert failure.value.kind == kind
    assert KEY not in str(failure.value)


@pytest.mark.parametrize(
    ("reply", "text", "stop"),
    [
        (Reply("cut off in the middle", cut_after=2, pieces=5), "cut off in", "cut"),
        (Reply("at its limit", finish="length"), "at its limit", "length"),
        (Reply("no reason", finish=None), "no reason", "stop"),
        (Reply("other ids", ids=False), "other ids", "stop"),
        (Reply(f"your key is {KEY}"), "your key is [key]", "stop"),
        (Reply(""), "", "stop"),
    ],
    ids=["cut", "length", "no finish", "wrong ids", "key said", "empty"],
)
def test_what_came_is_used_and_how_it_ended_is_told(bench: Bench, reply: Reply, text: str, stop: str) -> None:
    _, model = bench.model(lambda request, n: reply)
    answer = ask(model)
    assert (answer.text, answer.stop) == (text, stop)


def test_without_the_servers_counts_they_are_estimated_and_said_to_be(bench: Bench) -> None:
    _, model = bench.model(lambda request, n: Reply("hello there", usage=False))
    answer = ask(model)
    assert not answer.counted
    assert answer.tokens_out >= 2


def test_several_choices_give_the_first(bench: Bench) -> None:
    choices = [{"index": n, "message": {"content": str(n)}, "finish_reason": "stop"} for n in range(3)]
    body = json.dumps({"choices": choices}).encode()
    _, model = bench.model(lambda request, n: Reply(body=body))
    assert ask(model).text == "0"


def test_a_question_is_given_up_when_the_run_is_over(bench: Bench) -> None:
    _, model = bench.model(lambda request, n: Reply("word " * 20_000, drip_s=0.002), timeout_s=120)
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    with pytest.raises(ModelFailure) as failure:
        ask(model, cancelled=cancelled)
    assert failure.value.kind == "cancelled"


def test_no_more_questions_are_open_than_may_be(bench: Bench) -> None:
    open_now, most, lock = [0], [0], threading.Lock()

    def script(request: Request, number: int) -> Reply:
        with lock:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
        time.sleep(0.05)
        with lock:
            open_now[0] -= 1
        return Reply("fine")

    _, model = bench.model(script)
    threads = [threading.Thread(target=ask, args=(model,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_what_cannot_be_remembered_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "endpoints.json").write_text("{damaged")
    remembered = Remembered(tmp_path / "endpoints.json")
    assert remembered.get("x") == Remembered(None).get("x")
    found: Any = remembered.get("x").next_form()
    remembered.put("x", found)
    assert Remembered(tmp_path / "endpoints.json").get("x") == found
