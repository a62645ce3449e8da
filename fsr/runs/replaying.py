"""``--replay RUN``: the options under which a run is run again with its recorded answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fsr.runs.log import read_events
from fsr.runs.options import RefineOptions
from fsr.runs.resuming import RunStart
from fsr.settings import Settings, read_settings

PATIENCE = 4.0  # times the first run's budget: what ends it is the number of evaluations


def replayed(run: str, output: Path | None = None, settings: Settings | None = None) -> RefineOptions:
    """The options of an earlier run, to its last outcome, without a model. Raises UsageError when there is none."""
    folder = Path((settings or read_settings()).runs) / run
    start = RunStart.read(folder)
    told = sum(event["kind"] == "tell" for event in read_events(folder)) - 1
    return replace(
        start.options, llm=(), replay=run, evaluations=max(told, 1), budget_s=PATIENCE * start.options.budget_s,
        output=output, use_cache=False,
    )  # fmt: skip
