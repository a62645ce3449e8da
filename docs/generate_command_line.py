"""Write the help of every command into docs/command-line.md, between its markers.

``python docs/generate_command_line.py``; with ``--check`` nothing is written, and an old page ends with 1. Run it as a
process of its own: click keeps a command's help option, and so the width of its column, from the command's first use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from fsr.builds.lookup import USAGE
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
    context = click.Context(
        command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=["-h", "--help"]
    )
    return command.get_help(context)


def generated() -> str:
    """The text between the markers."""
    parts = [f"### {name}\n\n```text\n{help_of(name, command)}\n```\n" for name, command in commands()]
    return "\n" + "\n".join(parts) + "\n"


def rewritten(page: str) -> str:
    """The page with its help as it is now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + generated() + END + tail


def main() -> int:
    """Write the page, or with ``--check`` say whether it is today's."""
    page = PAGE.read_text()
    today = rewritten(page)
    if "--check" in sys.argv[1:]:
        if today != page:
            print(f"{PAGE.name} is not today's help; run: python docs/{Path(__file__).name}", file=sys.stderr)
        return int(today != page)
    PAGE.write_text(today)
    return 0


if __name__ == "__main__":
    sys.exit(main())
