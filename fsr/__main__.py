"""``fsr`` and ``python -m fsr``. Answers ``lookup`` before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    if sys.argv[1:2] == ["lookup"]:
        from fsr.cache.lookup import main as lookup
        from fsr.errors import FsrError
        from fsr.settings import read_settings

        try:
            sys.exit(lookup(sys.argv[2:], read_settings().cache))
        except FsrError as fault:
            print(f"fsr: {fault}", file=sys.stderr)
            sys.exit(fault.exit_code)
    from fsr.cli.main import run

    run()


if __name__ == "__main__":
    main()
