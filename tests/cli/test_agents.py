"""A coding agent's way in: ask and tell by hand, and the protocol server with the official SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fsr.app import agents
from fsr.errors import UsageError
from fsr.identity import candidate_hash, to_json
from fsr.llm.code import file_of
from fsr.runs.kernel import load_kernel
from fsr.runs.log import EventLog, read_events
from fsr.runs.options import RefineOptions
from fsr.runs.resuming import RunStart, asked
from fsr.search.proposal import Proposal
from fsr.settings import Settings
from tests.commandline import ROW_SUM
from tests.llm.kernels import timed


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home with a run of the original alone."""
    path = tmp_path / "kernel.cu"
    path.write_text(ROW_SUM)
    kernel = load_kernel(path)
    source = agents_digest(path)
    start = RunStart(RefineOptions(path, "host"), source, kernel.contract_digest(), None, (), timed(10_000.0))
    with EventLog(tmp_path / "home" / "runs" / "r1") as log:
        log.append("start", **start.to_json())
        log.append("ask", **asked(Proposal(0, kernel.baseline, candidate_hash(kernel.baseline), None, "b", "baseline")))
        log.append("tell", id=0, outcome=to_json(timed(10_000.0)))
    return Settings(str(tmp_path / "home"), str(tmp_path / "cache.db"))


def agents_digest(path: Path) -> str:
    from fsr.cache.digest import text_digest

    return text_digest(path.read_bytes())


def test_what_is_asked_holds_the_evidence_and_the_file_to_change(settings: Settings) -> None:
    told: Any = agents.ask("r1", settings)
    assert (told["id"], told["entry"], told["time_ns"]) == (1, "row_sum", 10_000.0)
    assert told["file"] in told["prompt"]
    assert "uncoalesced" in told["prompt"]
    assert agents.ask("r1", settings)["id"] == 2


def test_what_is_no_candidate_is_refused_with_its_reason_and_leaves_the_run_alone(settings: Settings) -> None:
    told: Any = agents.ask("r1", settings)
    folder = Path(settings.runs, "r1")
    before = list(read_events(folder))
    for answer, kind in (
        ("just words", "wrong entry"),
        (told["file"], "unchanged"),
        ("import torch", "other language"),
    ):
        said = agents.tell("r1", told["id"], answer, settings)
        assert (said["status"], said["kind"]) == ("refused", kind)
    assert list(read_events(folder)) == before
    with pytest.raises(UsageError, match="nobody asked question 7"):
        agents.tell("r1", 7, told["file"], settings)
    with pytest.raises(UsageError, match="no run"):
        agents.ask("r2", settings)
    with EventLog(folder), pytest.raises(UsageError, match="going on"):
        agents.tell("r1", 1, told["file"], settings)


def test_the_protocol_server_answers_reports_progress_and_is_cancelled(settings: Settings, tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")
    if not hasattr(mcp, "Client"):
        pytest.skip("the package mcp is older than version 2")
    environment = {**os.environ, "FSR_HOME": settings.home}
    parameters = mcp.StdioServerParameters(command=sys.executable, args=["-m", "fsr", "mcp"], env=environment)
    kernel = tmp_path / "kernel.cu"

    async def exchange() -> tuple[list[str], Any, list[float]]:
        progress: list[float] = []

        async def noted(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        async with mcp.Client(parameters) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            told = await client.call_tool("ask", {"run": "r1"}, progress_callback=noted)
            arguments = {"candidate": str(kernel), "kernel": str(kernel), "device": "host"}
            work = asyncio.ensure_future(client.call_tool("evaluate", arguments, progress_callback=noted))
            before = len(progress)
            while len(progress) < before + 2:
                await asyncio.sleep(0.05)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            while working(kernel):  # the test's time-out ends it where cancelling does not
                await asyncio.sleep(0.1)
            await client.call_tool("lookup", {"kernel": str(kernel)})
            return names, told, progress

    names, told, progress = asyncio.run(asyncio.wait_for(exchange(), 100))
    assert set(names) == {"contract", "features", "check", "evaluate", "lookup", "ask", "tell"}
    said = json.loads(told.content[0].text)
    assert (said["run"], said["id"]) == ("r1", 1)
    assert len(progress) >= 2


def working(kernel: Path) -> bool:
    """Whether a process still evaluates the kernel."""
    commands = (p.info["cmdline"] or [] for p in psutil.process_iter(["cmdline"]))
    return any("evaluate" in command and str(kernel) in command for command in commands)


def test_a_file_is_shown_with_its_launch_lines(settings: Settings) -> None:
    kernel = load_kernel(Path(settings.home).parent / "kernel.cu")
    assert file_of(kernel.baseline).startswith("// launch: row_sum |")
