"""Inspiration: what won on kernels that are held back by the same, from the cache of winners, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fsr.cache.entry import Entry
from fsr.features.schema import Features
from fsr.report.words import ratio_text

MOST = 4
LONGEST = 220


def won_elsewhere(entries: Iterable[Entry], features: Features) -> tuple[str, ...]:
    """Lines on the winners whose originals had bottlenecks most like these; best match first, at most MOST."""
    wanted = {b.name: b.share for b in features.bottlenecks}
    scored = []
    for entry in entries:
        evidence: Mapping[str, Any] = entry.evidence
        best, baseline = evidence.get("best"), evidence.get("baseline")
        if not isinstance(best, Mapping) or not isinstance(baseline, Mapping) or not best.get("actions"):
            continue
        causes = {b["name"]: float(b["share"]) for b in baseline.get("bottlenecks") or ()}
        alike = sum(min(share, causes.get(name, 0.0)) for name, share in wanted.items())
        line = f"- {evidence.get('entry')} ({', '.join(causes) or 'causes unknown'}): "
        line += f"{ratio_text(float(best['speedup']))} by {'; '.join(map(str, best['actions']))}"
        scored.append((alike, line[:LONGEST]))
    scored.sort(key=lambda one: -one[0])
    return tuple(line for alike, line in scored[:MOST] if alike > 0.0)
