"""A group of commands whose help says whole sentences."""

from __future__ import annotations

import click


class Group(click.Group):
    """click cuts what it says of a command where the line ends; here it goes on in the next."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command, in the order of the alphabet."""
        rows = [(name, self.commands[name].get_short_help_str(limit=1000)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
