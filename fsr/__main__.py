"""``fsr`` and ``python -m fsr``. Answers ``lookup`` and ``launch`` before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    if sys.argv[1:2] in (["lookup"], ["launch"]):
        sys.exit(for_builds(sys.argv[1], sys.argv[2:]))
    from fsr.cli.main import run

    run()


def for_builds(command: str, arguments: list[str]) -> int:
    """The two commands that build systems call; the exit code."""
    from fsr.cache.layers import Layers
    from fsr.errors import FsrError, of_the_machine
    from fsr.settings import read_settings

    home = ""
    try:
        settings = read_settings()
        home, layers = settings.home, Layers(*settings.layers)
    except FsrError as fault:
        print(f"fsr: {fault}", file=sys.stderr)
        if command == "lookup":
            return fault.exit_code
        layers = Layers("")  # the compiler is called all the same
    if command == "lookup":
        from fsr.builds.lookup import main as lookup

        try:
            return lookup(arguments, layers, home)
        except (OSError, MemoryError) as fault:
            told = of_the_machine(fault)
            print(f"fsr: {told}", file=sys.stderr)
            return told.exit_code
    from fsr.builds.launching import main as launch

    return launch(arguments, layers, home)


if __name__ == "__main__":
    main()
