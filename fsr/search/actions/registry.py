"""All actions there are, in the order in which their moves are listed. Explicit: an action is added here."""

from __future__ import annotations

from fsr.search.actions.atomics import PRIVATE_BINS, REDUCE_ATOMICS
from fsr.search.actions.protocol import Action
from fsr.search.actions.rows import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.search.actions.simple import SIMPLE
from fsr.search.actions.structural import STRUCTURAL_ACTIONS

_STRUCTURAL: tuple[Action, ...] = (ROW_PER_WARP, ROW_PER_BLOCK, REDUCE_ATOMICS, PRIVATE_BINS, *STRUCTURAL_ACTIONS)


def all_actions() -> tuple[Action, ...]:
    """Every action, stateless and shared."""
    return (*_STRUCTURAL, *SIMPLE)
