"""Models in a run, through the command line, with a hosted model that misbehaves; consent, caps and keys."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fsr.app.api import refine
from fsr.errors import UsageError
from fsr.features.schema import Features
from fsr.runs.models import named_models, open_models, unknown_hosts
from fsr.runs.options import RefineOptions
from fsr.settings import Settings
from tests.commandline import ROW_SUM, Fsr
from tests.llm.kernels import WARP
from tests.llm.server import Reply, Request, ScriptedServer, refusal

pytest.importorskip("openai", reason="the package openai is not installed")
psutil = pytest.importorskip("psutil", reason="the package psutil is not installed")
KEY = "sk-never-to-be-seen-7f3a91"
EXAMPLE = "https://api.example.com/v1#m"
WRONG = WARP.replace("j = lane", "j = lane + 1")
RACE = WARP.replace("if (lane == 0) y[row] = sum;", "y[row] = sum;")
OUTSIDE = WARP.replace("if (row >= rows) return;", "")
EMBED = WARP.replace("__global__", '#include "/etc/passwd"\n__global__')
STATE = WARP.replace("__global__", "__device__ float kept;\n__global__").replace(
    "y[row] = sum", "kept += 1, y[row] = sum"
)
BAD = [
    "Certainly! Use shared memory.", "", WRONG, RACE, OUTSIDE, EMBED, STATE, "```python\nimport triton\n```",
    "does not compile {", WARP.replace("row_sum", "other"), WARP.replace("float sum", "flot sum"), "x" * 300_000,
]  # fmt: skip


class Misbehaving:
    """Every second request is answered by the next thing that is wrong."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, request: Request, number: int) -> Reply:
        if "response_format" in request or "grammar" in request:
            fields = request["response_format"].get("json_schema", {}).get("schema", {}).get("properties", {})
            return Reply(json.dumps({name: (v.get("enum") or ["why"])[0] for name, v in fields.items()}))
        self.number += 1
        if self.number % 7 == 3:
            return refusal(429, f"slow down, {KEY}", **{"retry-after": "0.01"})
        if self.number % 7 == 5:
            return Reply(WARP, cut_after=1)
        said = BAD[self.number % len(BAD)]
        return Reply(f"```cuda\n{said}\n```" if "__global__" in said else said)


def started(fsr: Fsr, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        fsr.command(*arguments), env=fsr.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.timeout(300)
def test_a_model_that_misbehaves_is_killed_resumed_replayed_and_leaks_no_key(fsr: Fsr, row_sum: Path) -> None:
    """One run through the command line, killed in its middle: no lost outcome, no question asked twice, nothing wrong
    accepted, the ledger is the server's, and the key is nowhere."""
    server = ScriptedServer(Misbehaving())
    fsr.home.mkdir()
    (fsr.home / "config.toml").write_text(
        f'[models.bad]\nuse = "{server.url}#bad"\nkey = "SCRIPTED_API_KEY"\ndollars_in = 10.0\ndollars_out = 10.0\n'
        'roles = ["coder", "repair", "chooser"]\n'
    )
    fsr.env["SCRIPTED_API_KEY"] = KEY
    arguments = ("--device", "host", "--evaluations", 4, "--workers", 1, "--llm", "bad", "--no-cache", "--budget", "3m")
    process = started(fsr, "refine", row_sum, *arguments)
    folder, environments = None, list[bytes]()
    try:
        for _ in process.stderr or ():
            environments += environments_below(process.pid)
            folder = next(iter((fsr.home / "runs").glob("*")), None)
            log = folder / "events.jsonl" if folder else None
            if log is not None and log.is_file() and log.read_text().count('"kind":"tell"') > 1 and server.charged[0]:
                break
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()  # type: ignore[union-attr]
    assert folder is not None
    assert environments
    assert not [e for e in environments if KEY.encode() in e]
    before = [e for e in fsr.events(folder.name) if e["kind"] == "tell"]
    result = json.loads(fsr.run("refine", "--resume", folder.name, "--json", timeout_s=250).stdout)
    after = fsr.events(folder.name)
    assert [e for e in after if e["kind"] == "tell"][: len(before)] == before
    assert result["evaluated"] == 4
    told = {e["id"]: e["outcome"]["status"] for e in after if e["kind"] == "tell"}
    asked = {e["id"]: e for e in after if e["kind"] == "ask"}
    written = [told[n] for n, e in asked.items() if e["proposer"] == "bad" and e["origin"] != "chooser"]
    assert not {"correct", "slow", "promoted"} & set(written)
    questions = [json.dumps([r["messages"], r.get("seed")]) for r in server.requests]
    answered = [e for e in book(folder) if e["kind"] == "answer"]
    assert len({e["hash"] for e in answered}) == len(answered)
    model = result["models"]["bad"]
    known = [a["answer"] for a in answered]
    assert model["tokens_in"] == sum(a["tokens_in"] for a in known)
    assert model["tokens_in"] >= 1
    assert model["dollars"] == pytest.approx(sum(a["tokens_in"] + a["tokens_out"] for a in known) / 1e5)
    assert questions
    assert server.keys
    assert set(server.keys) == {f"Bearer {KEY}"}
    server.close()
    leaks = [p for p in fsr.home.parent.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert leaks == []
    assert KEY not in json.dumps([server.requests, result])


def environments_below(process: int) -> list[bytes]:
    """The environments of all processes that a process has started, as the kernel keeps them (proc(5)). One that is a
    copy of its parent still, on its way to another program, is left out: on a busy machine that takes a while."""
    found, own = [], psutil.Process(process).cmdline()
    for child in psutil.Process(process).children(recursive=True):
        with contextlib.suppress(OSError, psutil.NoSuchProcess):  # it has ended
            if child.cmdline() == own:
                continue
            found.append(Path(f"/proc/{child.pid}/environ").read_bytes())
    return [environment for environment in found if environment]


def book(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "answers.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def test_no_child_of_a_run_sees_a_key() -> None:
    from fsr.sandbox.environment import clean_environment

    assert clean_environment({"SCRIPTED_API_KEY": KEY, "OPENAI_API_KEY": KEY, "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(str(tmp_path), str(tmp_path / "cache.db"))


def opened(options: RefineOptions, settings: Settings) -> object:
    return open_models(options, settings, Path(settings.home), Features(), predicted=True)


def test_the_source_goes_nowhere_without_consent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSR_LLM_KEY", KEY)
    options = RefineOptions(Path("k.cu"), llm=(EXAMPLE,))
    assert unknown_hosts(named_models(options, settings), settings) == ["api.example.com"]
    with pytest.raises(UsageError, match=r"would go to api\.example\.com"):
        opened(options, settings)
    agreed = RefineOptions(Path("k.cu"), llm=(EXAMPLE,), yes=True)
    for model in opened(agreed, settings):  # type: ignore[attr-defined]
        model.close()
    assert unknown_hosts(named_models(options, settings), settings) == []
    for model in opened(options, settings):  # type: ignore[attr-defined]
        model.close()


def test_a_model_that_cannot_be_asked_is_told_before_anything_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSR_HOME", str(tmp_path / "home"))
    kernel = tmp_path / "k.cu"
    kernel.write_text(ROW_SUM.replace("float sum", "flot sum"))  # whose test would fail
    with pytest.raises(UsageError, match=r"would go to api\.example\.com"):
        refine(kernel, device="host", llm=(EXAMPLE,))


def test_a_cap_needs_a_price_and_a_model_one_name(settings: Settings) -> None:
    with pytest.raises(UsageError, match="no price is known"):
        named_models(RefineOptions(Path("k.cu"), llm=(EXAMPLE,), max_cost=1.0), settings)
    with pytest.raises(UsageError, match="named twice"):
        named_models(RefineOptions(Path("k.cu"), llm=(EXAMPLE, EXAMPLE)), settings)
    named = Settings(settings.home, settings.cache, llm=(EXAMPLE,))
    assert len(named_models(RefineOptions(Path("k.cu")), named)) == 1
    assert named_models(RefineOptions(Path("k.cu"), llm=("none",)), named) == []
