"""``fsr doctor``: what works on this machine and what to install."""

from __future__ import annotations

import json

import click

from fsr.backends.backend import BROKEN, Finding
from fsr.cli.probe import findings
from fsr.errors import EXIT_DONE, EXIT_FAILED
from fsr.identity import to_json

_MARKS = {"ok": ("ok", "green"), "missing": ("missing", "yellow"), "broken": ("BROKEN", "red"), "note": ("-", None)}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def doctor_command(as_json: bool) -> int:
    """Say what works on this machine and what to install.

    Every line is the result of trying it: a compiler has compiled, the host device has run a kernel. Ends with 1
    when something is installed and does not work, or when no device can run kernels.
    """
    found = findings(lambda finding: None if as_json else _print(finding))
    devices = [f.device for f in found if f.state == "ok" and f.device]
    healthy = bool(devices) and not any(f.state == BROKEN for f in found)
    if as_json:
        report = {"healthy": healthy, "devices": devices, "findings": [to_json(finding) for finding in found]}
        click.echo(json.dumps(report))
    else:
        click.echo(f"\ndevices: {', '.join(devices) or 'none; install what is missing above'}")
    return EXIT_DONE if healthy else EXIT_FAILED


def _print(finding: Finding) -> None:
    mark, color = _MARKS[finding.state]
    click.echo(f"{click.style(mark.ljust(8), fg=color)}{finding.what.ljust(18)}{finding.detail}")
    if finding.fix and finding.state != "ok":
        click.echo(f"{' ' * 26}{finding.fix}")
