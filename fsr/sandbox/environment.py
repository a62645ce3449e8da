"""What processes that fsr starts see of its environment: nothing that looks like a secret."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

SECRET_MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without anything that looks like a secret: neither candidates nor tools need API keys."""
    return {k: v for k, v in environment.items() if not any(mark in k.upper() for mark in SECRET_MARKS)}


def run_tool(command: Sequence[str], *, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, its output as text, in a clean environment. ``options``: more of subprocess.run's.

    Raises what subprocess.run raises."""
    return subprocess.run(
        command, capture_output=True, text=True, check=check, env=clean_environment(), **options
    )  # fmt: skip
