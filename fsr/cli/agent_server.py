"""``fsr mcp``: fsr as a Model Context Protocol server on standard input and output, for coding agents.

Every tool is a command of fsr in a process of its own: what takes long reports progress, and is killed, with all that
it started, when the agent cancels it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from fsr import __version__

PROGRESS_S = 0.5
INSTRUCTIONS = (
    "fsr makes GPU kernels faster and proves that they do the same. ask gives evidence and a file to change; tell "
    "judges what you made of it. Candidates are device code with launch lines on top; they are tested, never trusted."
)
server = MCPServer("fsr", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")


async def _command(context: Context[Any, Any], *arguments: str) -> dict[str, Any]:
    """The JSON object that a command of fsr prints; its message as ``error`` where it prints none."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fsr", *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    began, talk = time.monotonic(), asyncio.ensure_future(process.communicate())
    try:
        while True:
            done, _ = await asyncio.wait([talk], timeout=PROGRESS_S)
            if done:
                break
            elapsed = time.monotonic() - began
            await context.report_progress(round(elapsed, 1), None, f"fsr {arguments[0]}: {elapsed:.0f} s")
    finally:
        if process.returncode is None:  # cancelled, or the connection is gone
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            talk.cancel()
    out, err = (part.decode(errors="replace") for part in talk.result())
    try:
        told = json.loads(out)
    except ValueError:
        return {"exit": process.returncode, "text": out.strip(), "error": err.strip()[-2000:]}
    return {"exit": process.returncode, **told} if isinstance(told, dict) else {"result": told}


@server.tool()
async def contract(kernel: str, context: Context[Any, Any]) -> dict[str, Any]:
    """What the kernel in a .cu file promises: arguments, sizes, launch, tolerance; inferred where it says nothing."""
    return await _command(context, "contract", kernel)


@server.tool()
async def features(kernel: str, context: Context[Any, Any], target: str = "sm_90") -> dict[str, Any]:
    """What holds the kernel in a .cu file back, line by line, with counts and a predicted time."""
    return await _command(context, "features", kernel, "--target", target, "--json")


@server.tool()
async def check(candidate: str, kernel: str, context: Context[Any, Any], device: str = "auto") -> dict[str, Any]:
    """Test a candidate file against the kernel that it stands for: every search-time and held-out case."""
    return await _command(context, "check", candidate, "--against", kernel, "--device", device, "--json")


@server.tool()
async def evaluate(candidate: str, kernel: str, context: Context[Any, Any], device: str = "auto") -> dict[str, Any]:
    """Test a candidate file against a kernel and time both, paired; the verdict has the speed-up's interval."""
    return await _command(context, "evaluate", candidate, "--against", kernel, "--device", device, "--json")


@server.tool()
async def lookup(kernel: str, context: Context[Any, Any]) -> dict[str, Any]:
    """The cached winner for a kernel on this hardware; exit 3 when there is none."""
    return await _command(context, "lookup", kernel)


@server.tool()
async def ask(run: str, context: Context[Any, Any], style: str = "whole") -> dict[str, Any]:
    """Evidence on the fastest candidate of a run: a prompt, the file to change, and the id for tell."""
    return await _command(context, "ask", run, "--style", style)


@server.tool()
async def tell(run: str, id: int, candidate: str, context: Context[Any, Any]) -> dict[str, Any]:
    """Judge a candidate's text (launch lines on top) made from question ``id`` of a run; verdict and evidence."""
    with tempfile.TemporaryDirectory(prefix="fsr-tell-") as folder:
        path = Path(folder, "candidate.cu")
        path.write_text(candidate)
        return await _command(context, "tell", run, str(id), str(path))
