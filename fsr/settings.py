"""The one reader of environment variables and of the user's configuration file.

Settings are read once, by the composition root, and passed down. The file is ``config.toml`` in the folder
that ``fsr doctor`` names; environment variables win over it.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from fsr.errors import UsageError

VARIABLES = {"home": "FSR_HOME", "cache": "FSR_CACHE", "workers": "FSR_WORKERS"}


@dataclass(frozen=True, slots=True)
class Settings:
    """home: folder of runs and caches. cache: the SQLite database of winners. workers: compile processes,
    None for one a core."""

    home: Path
    cache: Path
    workers: int | None = None

    @property
    def runs(self) -> Path:
        """The folder that holds one folder a run."""
        return self.home / "runs"


def default_home() -> Path:
    """The per-user data folder, without importing platformdirs (lookup must stay fast)."""
    if base := os.environ.get("XDG_DATA_HOME"):
        return Path(base) / "fsr"
    return Path.home() / ".local" / "share" / "fsr"


def read_settings() -> Settings:
    """Settings from environment variables, then ``config.toml``, then defaults.

    Raises UsageError when the file does not parse or a value is of the wrong kind."""
    home = Path(os.environ.get(VARIABLES["home"]) or default_home()).expanduser()
    data = _read_file(home / "config.toml")
    cache = os.environ.get(VARIABLES["cache"]) or data.get("cache") or home / "cache.db"
    workers = os.environ.get(VARIABLES["workers"]) or data.get("workers")
    try:
        count = None if workers is None else int(str(workers))
    except ValueError:
        count = 0
    if count is not None and count < 1:
        raise UsageError(
            f"the number of workers is {workers!r}", expected="a whole number of at least 1",
            where=VARIABLES["workers"] if os.environ.get(VARIABLES["workers"]) else str(home / "config.toml"),
            fix="unset it for one worker a core",
        )  # fmt: skip
    return Settings(home, Path(str(cache)).expanduser(), count)


def _read_file(path: Path) -> dict[str, object]:
    try:
        data = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the configuration cannot be read: {fault}", where=str(path), fix="correct it") from None
    unknown = sorted(set(data) - {"cache", "workers"})
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}", expected="cache or workers", where=str(path))
    return data
