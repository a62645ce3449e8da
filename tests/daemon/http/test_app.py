"""The API: who may ask, what is answered, and that the document says the same."""

from __future__ import annotations

import http.client
import json
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from fsr.cache.bundle import unpacked
from fsr.cache.signing import Keys
from fsr.cache.store import Store
from fsr.errors import FsrError, UsageError
from fsrd.control.client import ask
from fsrd.http.app import application
from fsrd.http.endpoints import ENDPOINTS
from fsrd.http.openapi import document
from fsrd.http.server import Server
from fsrd.service.service import Service
from tests.builds.conftest import winner_of
from tests.daemon.stand_in import eventually, kernel, service_of


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


class Api:
    """The service behind its server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.server = Server(application(service), service.place, 0)
        self.server.start()
        self.base, _, self.token = self.server.address.partition("#")
        self.port = int(self.base.rsplit(":", 1)[1].strip("/"))

    def ask(self, method: str, path: str, body: object = None, token: str | None = "", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if data is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        connection.putrequest(method, path, skip_host="Host" in sent)
        for name, value in (sent | ({"Content-Length": str(len(data))} if data is not None else {})).items():
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get("content-type", "")
        told = json.loads(text) if text and kind.startswith("application/json") else text
        return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, told)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    service = service_of(folder)
    service.pause()
    kernel(folder / "kernels", "a")
    service.start()
    api = Api(service)
    assert service.watcher is not None
    assert service.watcher.ready.wait(30)
    yield api
    service.bus.close()
    api.server.close()
    service.close()


def every(method: str) -> list[str]:
    return [
        e.path.replace("{job}", "1").replace("{run}", "x").replace("{source}", "0" * 64)
        for e in ENDPOINTS
        if e.method == method
    ]


def test_nobody_without_the_token_is_answered(api: Api) -> None:
    for path in [*every("GET"), "/api/openapi.json", "/api/events", "/metrics", "/api/unknown"]:
        for token in (None, "wrong", api.token[:-1], "é"):
            answer = api.ask("GET", path, token=None, **({} if token is None else {"Authorization": f"Bearer {token}"}))
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), path
    for path in every("POST"):
        assert api.ask("POST", path, {}, token=None).status == 401
        assert api.ask("POST", f"{path}?token={api.token}", {}, token=None).status == 401
    assert api.service.store.jobs()[0].state == "queued"


@pytest.mark.parametrize("host", ["evil.example:{port}", "evil.example", "127.0.0.1:1", "127.0.0.1.evil:{port}"])
def test_another_host_is_refused_token_or_not(api: Api, host: str) -> None:
    for path in ("/", "/api/status"):
        assert api.ask("GET", path, Host=host.format(port=api.port)).status == 421
    assert api.ask("GET", "/api/status", Host=f"LOCALHOST:{api.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://127.0.0.1:{port}"},
     {"Origin": "http://127.0.0.1:1"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}],
)  # fmt: skip
def test_pages_of_other_sites_are_refused(api: Api, headers: dict[str, str]) -> None:
    sent = {name: value.format(port=api.port) for name, value in headers.items()}
    assert api.ask("POST", "/api/jobs/1/cancel", **sent).status == 403
    assert api.ask("GET", "/api/status", **sent).status == 403
    own = {"Origin": f"http://127.0.0.1:{api.port}", "Sec_Fetch_Site": "same-origin"}
    answer = api.ask("GET", "/api/status", **own)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_jobs_are_listed_cancelled_and_asked_for_again(api: Api) -> None:
    (job,) = api.ask("GET", "/api/jobs?state=queued").body["jobs"]
    assert api.ask("GET", f"/api/jobs/{job['id']}").body == job
    asked = api.ask("POST", "/api/jobs", {"kernel": job["kernel"]}).body
    assert (asked["id"], asked["state"], asked["priority"]) == (job["id"], "queued", 30)
    assert api.ask("POST", f"/api/jobs/{job['id']}/again").status == 409
    assert api.ask("POST", f"/api/jobs/{job['id']}/cancel").body == {"done": True}
    assert api.ask("POST", f"/api/jobs/{job['id']}/cancel").body == {"done": False}
    assert api.ask("POST", "/api/jobs", {"kernel": job["kernel"]}).status == 409
    again = api.ask("POST", f"/api/jobs/{job['id']}/again").body
    assert (again["kernel"], again["state"], again["priority"]) == (job["kernel"], "queued", 30)
    assert api.ask("GET", "/api/jobs/999").status == 404


def test_a_run_has_whatever_name_its_kernel_has(api: Api) -> None:
    folder = Path(api.service.settings.runs) / "20261123-000000-m\u00fc 1 (copy)-00ff"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("")
    answer = api.ask("GET", f"/api/runs/{quote(folder.name)}")
    assert (answer.status, answer.body["run"]) == (200, folder.name)


def test_what_is_wrong_is_said(api: Api) -> None:
    for query in ("state=odd", "limit=0", "limit=x", "before=-1", "other=1", "limit=1&limit=2"):
        answer = api.ask("GET", f"/api/jobs?{query}")
        assert (answer.status, list(answer.body)) == (400, ["error"]), query
    for body in ({}, [], {"kernel": 3}, {"kernel": ""}, {"kernel": "/x", "more": 1}, b"{", b"\xff"):
        assert api.ask("POST", "/api/jobs", body).status == 400
    assert api.ask("POST", "/api/jobs", b"{}", Content_Type="text/plain").status == 415
    assert api.ask("POST", "/api/jobs", {"kernel": "x" * 70_000}).status == 413
    assert api.ask("POST", "/api/jobs", {"kernel": "/etc/passwd"}).status == 404
    assert api.ask("GET", "/api/lookup?kernel=/etc/passwd").status == 404
    for run in ("nobody", "..", "%2e%2e", "..%2f..%2fetc", ".x"):
        assert api.ask("GET", f"/api/runs/{run}").status in (400, 404), run
    assert api.ask("GET", "/api/unknown").status == 404


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/api/jobs", "GET, HEAD, POST"), ("/api/jobs/1", "GET, HEAD"), ("/api/pause", "POST"), ("/", "GET, HEAD"),
     ("/metrics", "GET, HEAD"), ("/api/unknown", "GET, HEAD")],
)  # fmt: skip
def test_a_method_that_is_not_there_is_told_which_are(api: Api, path: str, allowed: str) -> None:
    for method in ("DELETE", "PATCH", "TRACE"):
        answer = api.ask(method, path)
        assert (answer.status, ", ".join(sorted(answer.headers["allow"].split(", ")))) == (405, allowed), method
    assert api.ask("HEAD", "/api/jobs").body == b""


def test_the_files_of_the_page_and_nothing_else_are_served(api: Api) -> None:
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd"):
        assert api.ask("GET", path, token=None).status == 404, path


def test_a_pause_is_seen_by_all_and_metrics_say_so(api: Api) -> None:
    assert api.ask("POST", "/api/pause").body == {"done": False}
    text = api.ask("GET", "/metrics").body.decode()
    assert "fsr_paused 1.0" in text
    assert 'fsr_slot_busy{device="cuda:0",hardware="H200"} 0.0' in text
    assert "# HELP fsr_jobs Jobs by state." in text
    assert api.ask("GET", "/api/status").body["paused"] is True
    assert api.ask("GET", "/api/health").body == {"healthy": True}


def test_events_come_as_they_happen_and_are_caught_up_with(api: Api) -> None:
    before = api.service.bus.last
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=120)
    connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {api.token}"})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    threading.Timer(0.3, lambda: api.service.bus.tell("job", {"job": 7})).start()
    lines = [answer.readline().decode().strip() for _ in range(6)]
    assert lines[2:5] == [f"id: {before + 1}", "event: job", 'data: {"kind":"job","job":7}']
    connection.close()
    assert [number for number, _ in api.service.bus.after(before, 0) or []] == [before + 1]


def test_the_document_names_every_operation_and_its_refusals() -> None:
    told = document(ENDPOINTS)
    operations = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert operations == {(e.method, e.path) for e in ENDPOINTS}
    job = told["paths"]["/api/jobs/{job}"]["get"]
    assert job["parameters"][0]["required"] is True
    assert {"200", "401", "403", "404", "421"} <= set(job["responses"])
    assert "requestBody" in told["paths"]["/api/jobs"]["post"]


def test_winners_of_a_source_are_served_signed(api: Api) -> None:
    pytest.importorskip("cryptography", reason="the extra 'share' is not installed")
    watched = Path(api.service.store.jobs(limit=1)[0].kernel)
    (watched.parent / "scale.cuh").write_text("")
    mine = winner_of(watched)
    with Store(Path(api.service.settings.cache)) as store:
        for entry in (mine, replace(mine, basis="predicted", key=replace(mine.key, driver="another"))):
            store.publish(entry)
    told = api.ask("GET", f"/api/winners/{mine.key.source}").body
    assert unpacked(json.dumps(told).encode(), Keys(api.service.settings.home)).entries == (mine,)
    assert api.ask("GET", f"/api/winners/{'0' * 64}").status == 404
    assert api.ask("GET", "/api/winners/x").status == 400


def test_the_unix_socket_is_for_its_user_and_needs_no_token(api: Api) -> None:
    place = api.service.place
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.token.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    assert ask(place, "GET", "/api/status")["folders"] == [str(api.service.config.folder[0].folder().root)]
    with pytest.raises(FsrError, match="no job 999"):
        ask(place, "POST", "/api/jobs/999/cancel")


def test_asking_where_no_service_runs_is_told(tmp_path: Path) -> None:
    service = service_of(tmp_path)
    with pytest.raises(UsageError, match="does not run"):
        ask(service.place, "GET", "/api/status")
    service.store.close()
    assert eventually(lambda: True)
