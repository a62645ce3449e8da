"""The command group: finds each command's module by name, loads it only when it is used."""

from __future__ import annotations

import importlib
import sys
import traceback

import click

from fsr import __version__
from fsr.app.interrupts import count_interrupts
from fsr.errors import EXIT_FAILED, EXIT_USAGE, FsrError, of_the_machine, one_line

# name -> (module, attribute, help); the help stands here so that `fsr --help` imports no command.
COMMANDS = {
    "refine": ("fsr.cli.refine", "refine_command", "Find a faster kernel, proven to do the same."),
    "generate": ("fsr.cli.generate", "generate_command", "Have a model write a first kernel from a description."),
    "check": ("fsr.cli.check", "check_command", "Test a candidate against a kernel."),
    "evaluate": ("fsr.cli.check", "evaluate_command", "Test and time a candidate against a kernel."),
    "contract": ("fsr.cli.contract", "contract_command", "Show or infer what a kernel promises."),
    "features": ("fsr.cli.features", "features_command", "Say what holds a kernel back."),
    "lookup": ("fsr.cli.lookup", "lookup_command", "The winner for this hardware, for build systems."),
    "cache": ("fsr.cli.cache", "cache_command", "List, explain, verify, share and prune cached winners."),
    "bench": ("fsr.cli.bench", "bench_command", "Time a suite of kernels, refined, beside its peers."),
    "runs": ("fsr.cli.runs", "runs_command", "List and show past runs."),
    "ask": ("fsr.cli.agents", "ask_command", "Evidence of a run, ready for a prompt."),
    "tell": ("fsr.cli.agents", "tell_command", "Evaluate an answer to what was asked."),
    "mcp": ("fsr.cli.agents", "mcp_command", "Serve coding agents by the Model Context Protocol."),
    "daemon": ("fsr.cli.daemon", "daemon_command", "Refine the kernels of watched folders in the background."),
    "doctor": ("fsr.cli.doctor", "doctor_command", "Say what works on this machine and what to install."),
}


class Commands(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the documentation."""
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """--debug wherever it stands, as behind the command that failed; but not what ``lookup`` is given of nvcc's."""
        stop = args.index("--") if "--" in args else len(args)
        command = next((word for word in args[:stop] if not word.startswith("-")), "")
        if command != "lookup" and "--debug" in args[:stop]:
            args = ["--debug", *(word for word in args[:stop] if word != "--debug"), *args[stop:]]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fsr")
@click.option("--debug", is_flag=True, help="Show tracebacks; may stand behind the command, too.")
@click.pass_context
def fsr(context: click.Context, debug: bool) -> None:
    """Feature Search and Reinforcement: takes a GPU kernel that works and gives back one that is faster and
    proven to do the same."""
    context.obj = {"debug": debug}


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: errors of fsr as one message, no traceback unless --debug."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    count_interrupts()
    try:
        result = fsr.main(args=given, prog_name="fsr", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except FsrError as fault:
        if debug:
            traceback.print_exc()
        else:
            print(f"fsr: {fault}", file=sys.stderr)
        sys.exit(fault.exit_code)
    except click.exceptions.NoArgsIsHelpError as fault:
        print(fault.format_message(), file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except click.ClickException as fault:
        usage = fault.ctx.get_usage() + "\n" if isinstance(fault, click.UsageError) and fault.ctx is not None else ""
        print(f"{usage}Error: {one_line(fault.format_message())}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        print("fsr: interrupted", file=sys.stderr)
        sys.exit(130)
    except (OSError, MemoryError, RecursionError) as fault:
        if debug:
            raise
        told = of_the_machine(fault)
        print(f"fsr: {told}", file=sys.stderr)
        sys.exit(told.exit_code)
    except Exception as fault:
        if debug:
            raise
        print(
            f"fsr: a fault of fsr itself: {type(fault).__name__}: {fault}\n"
            "  next: run again with --debug and report it",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)
