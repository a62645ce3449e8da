"""The one reader of environment variables and of the user's configuration file.

Settings are read once, by the composition root, and passed down. The file is ``config.toml`` in the folder
that ``fsr doctor`` names; environment variables win over it.
"""

from __future__ import annotations

import os

from fsr.errors import UsageError

VARIABLES = {"home": "FSR_HOME", "cache": "FSR_CACHE", "system_cache": "FSR_SYSTEM_CACHE", "workers": "FSR_WORKERS"}


class Settings:
    """home: folder of runs and caches. cache: path of the SQLite database of winners. workers: compile
    processes, None for one a core. system_cache: a read-only database that lookups ask next, '' for none.
    (Plain strings and no dataclass: ``fsr lookup`` reads settings too.)"""

    __slots__ = ("cache", "home", "system_cache", "workers")

    def __init__(self, home: str, cache: str, workers: int | None = None, system_cache: str = "") -> None:
        self.home, self.cache, self.workers, self.system_cache = home, cache, workers, system_cache

    @property
    def runs(self) -> str:
        """The folder that holds one folder a run."""
        return os.path.join(self.home, "runs")  # noqa: PTH118


def default_home() -> str:
    """The per-user data folder of the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111
    return os.path.join(base, "fsr")  # noqa: PTH118


def read_settings() -> Settings:
    """Settings from environment variables, then ``config.toml``, then defaults.

    Raises UsageError when the file does not parse or a value is of the wrong kind."""
    home = os.path.expanduser(os.environ.get(VARIABLES["home"]) or default_home())  # noqa: PTH111
    data = _read_file(os.path.join(home, "config.toml"))  # noqa: PTH118
    cache = os.environ.get(VARIABLES["cache"]) or data.get("cache") or os.path.join(home, "cache.db")  # noqa: PTH118
    system = os.environ.get(VARIABLES["system_cache"]) or data.get("system_cache") or ""
    workers = os.environ.get(VARIABLES["workers"]) or data.get("workers")
    try:
        count = None if workers is None else int(str(workers))
    except ValueError:
        count = 0
    if count is not None and count < 1:
        raise UsageError(
            f"the number of workers is {workers!r}", expected="a whole number of at least 1",
            where=VARIABLES["workers"] if os.environ.get(VARIABLES["workers"]) else f"{home}/config.toml",
            fix="unset it for one worker a core",
        )  # fmt: skip
    return Settings(home, os.path.expanduser(str(cache)), count, os.path.expanduser(str(system)))  # noqa: PTH111


def _read_file(path: str) -> dict[str, object]:
    if not os.path.isfile(path):  # noqa: PTH113
        return {}
    import tomllib  # 2 ms, only where there is a file to read

    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = tomllib.load(file)
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the configuration cannot be read: {fault}", where=path, fix="correct it") from None
    unknown = sorted(set(data) - {"cache", "system_cache", "workers"})
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}", expected="cache, system_cache or workers", where=path)
    return data
