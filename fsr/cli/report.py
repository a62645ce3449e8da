"""``fsr runs report``: a run as one file that any browser shows, of the page's own components (package fsrd)."""

from __future__ import annotations

from pathlib import Path

import click

from fsr.errors import MissingToolError, StorageError
from fsr.runs.log import of_this_version
from fsr.runs.record import RunRecord
from fsr.settings import read_settings


@click.command("report")
@click.argument("run")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where it is written [RUN.html].")
def report_command(run: str, out: Path | None) -> None:
    """Write RUN as one HTML file: its speed-up over time, its candidates, the winner's diff and evidence.

    The file holds all that it shows, and opens offline.
    """
    try:
        from fsrd.page.report import report
    except ImportError:
        raise MissingToolError("the page is in the package fsrd, which is not here", fix="pip install fsr") from None

    output = out or Path(f"{run}.html")
    record = RunRecord.named(run, Path(read_settings().runs))
    with of_this_version(record.folder):
        text = report(record)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise StorageError(
            f"the report cannot be written: {fault.strerror}", where=str(output), fix="name another place with -o"
        ) from None
    click.echo(f"written {output}")
