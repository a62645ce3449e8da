"""Tests that share a device's lock, a cluster or what took long to make stay in one process."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("grouped")
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process")
def test_groups_have_an_effect(request: pytest.FixtureRequest) -> None:
    """pytest-xdist tells a group by what it adds to a test's name; some versions of pytest do not let it."""
    assert request.node.nodeid.endswith("@grouped")
