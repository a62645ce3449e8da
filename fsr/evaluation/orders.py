"""The orders of blocks and threads that a candidate must survive before it is told as a win."""

from __future__ import annotations

from fsr.backends.protocol import BlockOrder

# Each is adversarial in its own way: everything backwards; all blocks side by side, changing at every global access,
# with relaxed loads that lag; blocks mixed, one standing still until nothing else can go on.
ORDERS = (
    BlockOrder(seed=1, blocks=1, backward=1, stale=1),
    BlockOrder(seed=2, blocks=0, quantum=1, stale=2),
    BlockOrder(seed=3, blocks=2, backward=1, quantum=7, stalled=1, stale=1),
)
