"""Data that comes from outside: a name that is not known is an error, and says where it stands."""

from __future__ import annotations

import msgspec


class Strict(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table or object in which a misspelt name is an error."""
