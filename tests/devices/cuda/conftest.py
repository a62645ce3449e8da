"""Makes the fake driver and the conformance suite importable by name: test modules are no packages here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
for folder in (TESTS / "conformance", Path(__file__).parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
pytest.register_assert_rewrite("device_conformance")
