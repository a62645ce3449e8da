"""The models of a run: from what was named to proposers, with the book and the ledger in the run's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from fsr.cache.store import Store
from fsr.errors import FsrError, UsageError
from fsr.features.schema import Features
from fsr.llm.asking import Asking
from fsr.llm.book import ANSWERS, Book
from fsr.llm.capabilities import Remembered
from fsr.llm.exchange import Provider
from fsr.llm.keys import find_key
from fsr.llm.ledger import Ledger
from fsr.llm.named import ModelSpec, read_spec
from fsr.llm.proposer import ModelProposer
from fsr.llm.replaying import Replayed, script_of
from fsr.llm.similar import won_elsewhere
from fsr.records import Json
from fsr.runs.log import read_events
from fsr.runs.options import RefineOptions
from fsr.search.proposers.protocol import Proposer
from fsr.settings import Settings

NONE = "none"
ENDPOINTS, HOSTS = "endpoints.json", "hosts.json"


def named_models(options: RefineOptions, settings: Settings) -> list[ModelSpec]:
    """The models that a run asks. Raises UsageError for one that cannot be, and for two of one name."""
    return models_named(options.llm or settings.llm, options.max_cost, settings)


def models_named(names: Iterable[str], max_cost: float | None, settings: Settings) -> list[ModelSpec]:
    """The same by their names; ``max_cost``: a cap in dollars that their prices must allow to keep."""
    specs = [read_spec(name, settings.models) for name in names if name != NONE]
    twice = sorted({s.name for s in specs if sum(o.name == s.name for o in specs) > 1})
    if twice:
        raise UsageError(f"the model {twice[0]!r} is named twice", where="--llm", fix="name it once")
    unpriced = [s.name for s in specs if s.leaves and s.dollars(1, 1) is None]
    if max_cost is not None and unpriced:
        raise UsageError(
            f"no price is known for {unpriced[0]}, so that --max-cost cannot be kept",
            expected="dollars_in and dollars_out, for a million tokens", where=f"{settings.home}/config.toml",
            fix="describe the model there as [models.NAME], and say --llm NAME",
        )  # fmt: skip
    return specs


def require_models(options: RefineOptions, settings: Settings) -> None:
    """Raises, before anything is tested, what :func:`open_models` would: a name that is none, a host that nobody agreed
    to, a missing key, a missing package."""
    if options.replay is None:
        specs = named_models(options, settings)
        require_consent(specs, settings, given=options.yes)
        for spec in specs:
            provider_of(spec, settings).close()


def unknown_hosts(specs: Iterable[ModelSpec], settings: Settings) -> list[str]:
    """Hosts that would get the source for the first time, and that nobody has agreed to yet."""
    agreed = _agreed(settings)
    return sorted({spec.host for spec in specs if spec.leaves} - agreed)


def agree(hosts: Iterable[str], settings: Settings) -> None:
    """Remember that source may go to these hosts."""
    path = Path(settings.home, HOSTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sorted(_agreed(settings) | set(hosts))))


def require_consent(specs: Iterable[ModelSpec], settings: Settings, *, given: bool) -> None:
    """Raises UsageError where source would go to a host that nobody agreed to; ``given``: somebody does so now."""
    strange = unknown_hosts(specs, settings)
    if strange and not given:
        raise UsageError(
            f"the kernel's source would go to {', '.join(strange)}", expected="your consent, once for each host",
            where="--llm", fix="say --yes, or answer the question that is asked on a terminal",
        )  # fmt: skip
    if strange:
        agree(strange, settings)


def _agreed(settings: Settings) -> set[str]:
    with suppress(OSError, ValueError, TypeError):
        return set(json.loads(Path(settings.home, HOSTS).read_text()))
    return set()


def open_models(
    options: RefineOptions, settings: Settings, folder: Path, features: Features, *, predicted: bool
) -> Sequence[ModelProposer | Replayed]:
    """The proposers of a run's models. ``folder``: the run's. ``features``: of its original. ``predicted``: no GPU is
    being timed. Raises UsageError and MissingToolError before anything leaves the machine."""
    if options.replay is not None:
        source = Path(settings.runs, options.replay)
        return [Replayed(name, script) for name, script in script_of(read_events(source), source / ANSWERS).items()]
    specs = named_models(options, settings)
    require_consent(specs, settings, given=options.yes)
    ledger = Ledger(options.max_cost)
    book = Book(folder / ANSWERS, ledger)
    lines = _won_elsewhere(settings, features) if specs and options.use_cache else ()
    found = []
    for spec in specs:
        own = spec if predicted else replace(spec, gpu_layers=0)  # a GPU that is being timed does nothing else
        found.append(ModelProposer(Asking(own, provider_of(own, settings), book), options.seed, lines))
    return found


def provider_of(spec: ModelSpec, settings: Settings) -> Provider:
    """Who answers for a model. Raises MissingToolError, and UsageError where there is no key."""
    if spec.local:
        from fsr.llm.local import Local

        return Local(spec)
    from fsr.llm.hosted import Hosted

    return Hosted(spec, find_key(spec, os.environ), Remembered(Path(settings.home, ENDPOINTS)))


def _won_elsewhere(settings: Settings, features: Features) -> tuple[str, ...]:
    """What the cache knows of kernels like this one; nothing where there is none."""
    if not Path(settings.cache).is_file():
        return ()
    try:
        with closing(Store(Path(settings.cache))) as store:
            return won_elsewhere([entry for _, entry in store.entries() if entry is not None], features)
    except FsrError:
        return ()


def reports(proposers: Sequence[Proposer]) -> Mapping[str, Mapping[str, Json]]:
    """What each model among the proposers tells."""
    return {p.name: p.report() for p in proposers if isinstance(p, ModelProposer)}
