"""The one reader of environment variables and of the user's configuration file.

Settings are read once, by the composition root, and passed down. The file is ``config.toml`` in the folder
that ``fsr doctor`` names; environment variables win over it.
"""

from __future__ import annotations

import os

from fsr.errors import UsageError
from fsr.files import Unreadable, read_file

VARIABLES = {
    "home": "FSR_HOME", "cache": "FSR_CACHE", "system_cache": "FSR_SYSTEM_CACHE", "remote_cache": "FSR_REMOTE_CACHE",
    "remote_token": "FSR_REMOTE_TOKEN", "workers": "FSR_WORKERS",
}  # fmt: skip


class Settings:
    """home: folder of runs and caches. cache: path of the SQLite database of winners. workers: compile
    processes, None for one a core. system_cache: a read-only database that lookups ask next, '' for none. remote_cache:
    the address of a daemon that they ask last; remote_token: what opens it, from the environment alone. llm: models of
    every run that names none; models: the tables that describe them (fsr.llm.named).
    (Plain strings and no dataclass: ``fsr lookup`` reads settings too.)"""

    __slots__ = ("cache", "home", "llm", "models", "remote_cache", "remote_token", "system_cache", "workers")

    def __init__(
        self, home: str, cache: str, workers: int | None = None, system_cache: str = "", llm: tuple[str, ...] = (),
        models: dict[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.home, self.cache, self.workers, self.system_cache = home, cache, workers, system_cache
        self.llm, self.models = llm, models or {}
        self.remote_cache = self.remote_token = ""

    @property
    def layers(self) -> tuple[str, str, str, str, str]:
        """What lookups ask, as fsr.cache.layers.Layers takes it."""
        return self.cache, self.system_cache, self.remote_cache, self.remote_token, self.home

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
    llm, models = _models(data, f"{home}/config.toml")
    system_cache = os.path.expanduser(str(system))  # noqa: PTH111
    settings = Settings(home, os.path.expanduser(str(cache)), count, system_cache, llm, models)  # noqa: PTH111
    settings.remote_cache = _address(os.environ.get(VARIABLES["remote_cache"]) or data.get("remote_cache") or "", home)
    settings.remote_token = os.environ.get(VARIABLES["remote_token"]) or ""
    return settings


def _address(told: object, home: str) -> str:
    text = str(told)
    if text and not text.startswith(("http://", "https://")):
        raise UsageError(
            f"the remote cache is {text!r}", expected="an address: http://127.0.0.1:8477",
            where=VARIABLES["remote_cache"] if os.environ.get(VARIABLES["remote_cache"]) else f"{home}/config.toml",
            fix="name the daemon that serves it",
        )  # fmt: skip
    return text


def _models(data: dict[str, object], where: str) -> tuple[tuple[str, ...], dict[str, object]]:
    """The settings ``llm`` and ``models``; what a model's table holds is checked where it is used."""
    llm, models = data.get("llm", []), data.get("models", {})
    named = [llm] if isinstance(llm, str) else llm
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise UsageError(f"llm is {llm!r}", expected='a list of models: llm = ["local:model.gguf"]', where=where)
    if not isinstance(models, dict):
        raise UsageError(f"models is {models!r}", expected="a table for each model: [models.NAME]", where=where)
    return tuple(named), models


def _read_file(path: str) -> dict[str, object]:
    try:
        text = read_file(path)
    except Unreadable as fault:
        if fault.absent:
            return {}
        raise UsageError(f"the configuration cannot be read: {fault.why}", where=path, fix="correct it") from None
    import tomllib  # 2 ms, only where there is a file to read

    try:
        data = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as fault:  # no TOML, or no UTF-8
        raise UsageError(f"the configuration cannot be read: {fault}", where=path, fix="correct it") from None
    for key in ("cache", "system_cache", "remote_cache"):
        value = data.get(key, "")
        if not isinstance(value, str) or "\0" in value:
            raise UsageError(f"{key} is {value!r}", expected="a text in quotes", where=path, fix="correct it")
    known = ("cache", "llm", "models", "remote_cache", "system_cache", "workers")
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}", expected=", ".join(known), where=path, fix="remove it")
    return data
