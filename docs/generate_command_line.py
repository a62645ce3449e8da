"""Write the help of every command into docs/command-line.md, between its markers.

``python docs/generate_command_line.py``; a test compares and fails when this was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from fsr.cache.lookup import USAGE
from fsr.cli.main import COMMANDS, fsr

PAGE = Path(__file__).with_name("command-line.md")
BEGIN, END = "<!-- help: written by docs/generate_command_line.py -->\n", "<!-- end of help -->\n"
WIDTH = 100


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups followed by their commands."""
    top = click.Context(fsr, info_name="fsr")
    for name in COMMANDS:
        command = fsr.get_command(top, name)
        assert command is not None
        yield f"fsr {name}", command
        if isinstance(command, click.Group):
            for part, inner in command.commands.items():
                yield f"fsr {name} {part}", inner


def help_of(name: str, command: click.Command) -> str:
    """What ``--help`` prints, at a fixed width."""
    if name == "fsr lookup":
        return USAGE
    text = command.get_help(click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH))
    # click keeps a command's help option from its first use, with or without the group's -h: say it one way.
    return re.sub(r"^  (?:-h, )?--help( +)", lambda m: "  -h, --help" + " " * max(2, len(m[0]) - 12), text, flags=re.M)


def generated() -> str:
    """The text between the markers."""
    parts = [f"### {name}\n\n```text\n{help_of(name, command)}\n```\n" for name, command in commands()]
    return "\n" + "\n".join(parts) + "\n"


def rewritten(page: str) -> str:
    """The page with its help as it is now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + generated() + END + tail


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
