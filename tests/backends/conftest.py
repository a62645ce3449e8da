"""Makes the conformance suite importable by name: test modules are no packages here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"
if str(CONFORMANCE) not in sys.path:
    sys.path.insert(0, str(CONFORMANCE))
pytest.register_assert_rewrite("device_conformance")
