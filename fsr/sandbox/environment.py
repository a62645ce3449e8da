"""What processes that fsr starts see of its environment: nothing that looks like a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping

SECRET_MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without anything that looks like a secret: neither candidates nor tools need API keys."""
    return {k: v for k, v in environment.items() if not any(mark in k.upper() for mark in SECRET_MARKS)}
