"""``fsr bench``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from fsr.cli.options import json_option
from fsr.errors import EXIT_DONE, EXIT_FAILED, UsageError

QUICK_BUDGET, BUDGET = "30s", "60s"


@click.command("bench")
@click.argument("suite", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--only", multiple=True, metavar="PATTERN", help="Workloads by name or pattern; may come several times.")
@click.option("--part", default="1/1", metavar="I/N", help="Every N-th of them from the I-th: for several GPUs.")
@click.option(
    "--peers",
    default="",
    metavar="LIST",
    help="Timed beside them on a GPU: torch, compile (compile-default: without autotuning), kernel-tuner.",
)
@click.option("--budget", help=f"Time for refining each workload [{BUDGET}; with --quick {QUICK_BUDGET}].")
@click.option("--quick", is_flag=True, help="The suite's own short selection.")
@click.option("--again", is_flag=True, help="Do workloads that have a record anew.")
@click.option("--retime", is_flag=True, help="Time those anew that have a record, with the winners found.")
@click.option("--table", "only_table", is_flag=True, help="SUITE are folders of results: only write their table.")
@click.option("--device", default="auto", show_default=True, help="auto, cuda:N or host.")
@click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for (host device).")
@click.option("--seed", default=0, show_default=True, help="Of every random choice.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="A folder for all that is written [bench].")
@json_option
def bench_command(
    suite: tuple[Path, ...], only: tuple[str, ...], part: str, peers: str, budget: str | None, quick: bool,
    only_table: bool, out: Path | None, as_json: bool, **options: str | int | bool,
) -> int:  # fmt: skip
    """Refine every workload of SUITE and time it side by side with its original and with peers.

    A folder that has results is gone on with. Exits 1 when a workload failed.
    """
    from fsr.bench.results import read
    from fsr.bench.running import Bench, BenchOptions, tabled
    from fsr.bench.suite import load_suite
    from fsr.bench.summary import summed_up
    from fsr.bench.table import table
    from fsr.identity import to_json
    from fsr.runs.options import parse_duration

    if only_table:
        text, records = tabled(suite, out), read(suite)
    else:
        if len(suite) != 1:
            raise UsageError(f"{len(suite)} suites", expected="one folder", fix="--table joins folders of results")
        asked = BenchOptions(
            (out or Path("bench")).absolute(), budget_s=parse_duration(budget or (QUICK_BUDGET if quick else BUDGET)),
            peers=tuple(filter(None, peers.replace(" ", "").split(","))), only=only, quick=quick, part=_part(part),
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        with _Progress() as progress:
            records = Bench(load_suite(suite[0].absolute()), asked, progress).run()
        text = table(records.values())
    click.echo(
        json.dumps({"summary": to_json(summed_up(records.values())), "records": to_json(records)}) if as_json else text
    )
    return EXIT_FAILED if any(r.status == "failed" for r in records.values()) else EXIT_DONE


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(f"the part is {text[:40]!r}", expected="I/N with 1 <= I <= N, as 2/4", where="--part")
    return int(found[1]), int(found[2])


class _Progress:
    """Lines that stay, and on a terminal a last one that says what is done now; on standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status = self._console.status("starting") if self._console.is_terminal else None

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, kept: str, now: str) -> None:
        from rich.markup import escape

        if kept:
            self._console.print(escape(kept))
        if now and self._status is not None:
            self._status.update(escape(now))
