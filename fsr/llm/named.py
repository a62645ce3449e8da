"""How models are named and configured: ``local:PATH``, ``URL#MODEL``, or a name in ``config.toml``.

[models.coder]
use = "https://api.example.com/v1#big-model"
key = "EXAMPLE_API_KEY"          # the environment variable that holds the key, never the key itself
dollars_in = 0.25                # for a million tokens of prompt
dollars_out = 2.0                # for a million tokens of answer
roles = ["coder", "judge"]       # by default what a model of its size can do
context = 32768
concurrency = 4
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fsr.errors import UsageError

ROLES = ("chooser", "coder", "judge", "macro", "crossover", "repair")
SMALL_BYTES = 1_500_000_000  # of a GGUF file: models below choose among moves, they cannot write kernels
SMALL_CONTEXT, CONTEXT = 4096, 16384
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model. ``path`` for a local file, else ``url`` and ``model``. key: name of an environment variable.
    dollars_*: for a million tokens, None where not known. context: tokens of prompt and answer. concurrency: questions
    at a time. gpu_layers: of a local model, used only while no GPU is being timed. timeout_s: for a whole answer."""

    name: str
    path: str = ""
    url: str = ""
    model: str = ""
    key: str = ""
    dollars_in: float | None = None
    dollars_out: float | None = None
    roles: tuple[str, ...] = ROLES
    context: int = CONTEXT
    concurrency: int = 1
    gpu_layers: int = 0
    threads: int = 1
    timeout_s: float = 180.0
    most_tokens: int | None = None  # in a run, prompts and answers together

    @property
    def local(self) -> bool:
        """Whether it is a file that runs here."""
        return bool(self.path)

    @property
    def host(self) -> str:
        """Where a hosted model's prompts go."""
        return urlsplit(self.url).hostname or ""

    @property
    def leaves(self) -> bool:
        """Whether what it is asked leaves this machine."""
        return not self.local and self.host not in LOOPBACK

    def dollars(self, tokens_in: int, tokens_out: int) -> float | None:
        """What an answer costs; None where no price is known. What runs on this machine is free."""
        if not self.leaves and self.dollars_in is None:
            return 0.0
        if self.dollars_in is None or self.dollars_out is None:
            return None
        return (tokens_in * self.dollars_in + tokens_out * self.dollars_out) / 1e6


def read_spec(text: str, configured: Mapping[str, Any]) -> ModelSpec:
    """The model that ``--llm`` names. ``configured``: the table ``models`` of the configuration. Raises UsageError."""
    if text not in configured:
        return _plain(text, tuple(configured))
    table = configured[text]
    where = f"config.toml: models.{text}"
    known = {f.name for f in fields(ModelSpec)} - {"name", "path", "url", "model"} | {"use"}
    if not isinstance(table, Mapping) or not isinstance(table.get("use"), str):
        raise UsageError("a model without its place", expected='use = "URL#MODEL" or "local:PATH"', where=where)
    unknown = sorted(set(table) - known)
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}", expected=", ".join(sorted(known)), where=where)
    spec = _plain(table["use"], ())
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items() if k != "use"}
    return _checked(replace(spec, name=text, **given), where)


def _checked(spec: ModelSpec, where: str) -> ModelSpec:
    for name, kind in (("context", int), ("concurrency", int), ("threads", int), ("gpu_layers", int)):
        value = getattr(spec, name)
        if not isinstance(value, kind) or isinstance(value, bool) or value < (0 if name == "gpu_layers" else 1):
            raise UsageError(f"{name} is {value!r}", expected="a whole number above zero", where=where)
    for name in ("dollars_in", "dollars_out", "timeout_s", "most_tokens"):
        value = getattr(spec, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise UsageError(f"{name} is {value!r}", expected="a number, at least 0", where=where)
    unknown = [r for r in spec.roles if r not in ROLES] if isinstance(spec.roles, tuple) else [spec.roles]
    if unknown:
        raise UsageError(f"unknown role {unknown[0]!r}", expected=", ".join(ROLES), where=where)
    if not isinstance(spec.key, str) or (spec.key and not (spec.key.isidentifier() and _SECRET.search(spec.key))):
        raise UsageError(  # the key itself, perhaps: it is not repeated
            "key is no name of an environment variable that is kept from candidates",
            expected="the name of a variable with KEY or TOKEN in it, not the key itself", where=where,
            fix='key = "EXAMPLE_API_KEY", and export that variable',
        )  # fmt: skip
    return spec


def _plain(text: str, names: tuple[str, ...]) -> ModelSpec:
    if text.startswith("local:") and len(text) > len("local:"):
        path = Path(text.removeprefix("local:")).expanduser()
        if not path.is_file():
            raise UsageError(
                f"there is no model file {str(path)!r}", expected="a GGUF file", where="--llm",
                fix="name the file: --llm local:/path/to/model.gguf",
            )  # fmt: skip
        small = path.stat().st_size < SMALL_BYTES
        roles, context = (("chooser",), SMALL_CONTEXT) if small else (ROLES, CONTEXT)
        return ModelSpec(f"local:{path.stem}", path=str(path.absolute()), roles=roles, context=context)
    url, mark, model = text.partition("#")
    parts = urlsplit(url)
    if not mark or not model or parts.scheme not in ("http", "https") or not parts.hostname:
        known = f", or a model of config.toml ({', '.join(names)})" if names else ""
        raise UsageError(
            f"the model is {text[:80]!r}", expected=f"local:PATH or URL#MODEL{known}", where="--llm",
            fix="for example --llm local:model.gguf or --llm http://localhost:11434/v1#qwen3",
        )  # fmt: skip
    if parts.username or parts.password or parts.query:
        raise UsageError(
            "the address of the model holds a user or a query", expected="a plain URL: keys come from the environment",
            where="--llm", fix="export the key and name its variable in config.toml",
        )  # fmt: skip
    port = f":{parts.port}" if parts.port else ""
    return ModelSpec(f"{model}@{parts.hostname}{port}", url=url.rstrip("/"), model=model, concurrency=2)
