"""The service's log: one file that is turned over before it grows, and standard error in the foreground."""

from __future__ import annotations

import logging
import sys
import warnings
from logging.handlers import RotatingFileHandler
from pathlib import Path

MOST_BYTES, KEPT = 1 << 20, 4
FORMAT = "%(asctime)s %(levelname)s %(message)s"


def set_up(path: Path, *, foreground: bool) -> None:
    """Log to a file and, in the foreground, to standard error too."""
    handlers: list[logging.Handler] = [RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=KEPT)]
    if foreground:
        handlers.append(logging.StreamHandler(sys.stderr))
    logging.basicConfig(level=logging.INFO, format=FORMAT, handlers=handlers, force=True)
    # watchdog 7.1 says so, in pages, of a folder that appeared twice within a moment, and goes on as it should
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    for name in ("uvicorn", "watchdog"):  # each of two servers tells of its start and end
        logging.getLogger(name).setLevel(logging.WARNING)
