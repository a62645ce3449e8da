"""Typed reading of TOML values, with errors that name the key, its line and what would have been right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsr.contract.model import Constraints
from fsr.contract.read import RawContract
from fsr.errors import ContractError
from fsr.expressions import parse

VALUE_KEYS = ("low", "high", "sorted", "nonnegative", "positive", "finite", "unique")


class Fields:
    """One TOML table of a contract; ``keys`` is the path to it."""

    def __init__(self, raw: RawContract, data: Any, *keys: str | int) -> None:
        self.raw, self.keys = raw, keys
        if not isinstance(data, Mapping):
            raise self.bad(f"{self.title} is {data!r}", "a table, for example {min = 0, max = 1024}")
        self.data: Mapping[str, Any] = data

    @property
    def title(self) -> str:
        """The path as TOML writes it; ``the contract`` on top."""
        return ".".join(str(k) for k in self.keys) or "the contract"

    def bad(self, what: str, expected: str, *keys: str | int, fix: str = "correct the contract") -> ContractError:
        """An error at a key of this table."""
        return ContractError(what, expected=expected, where=self.raw.where(*self.keys, *keys), fix=fix)

    def only(self, allowed: Iterable[str]) -> None:
        """Refuse any other key, with the nearest right one."""
        known = tuple(allowed)
        for key in self.data:
            if key not in known:
                raise self.bad(
                    f"{self.title} has the key {key!r}",
                    "one of: " + ", ".join(known),
                    key,
                    fix=did_you_mean(key, known),
                )

    def table(self, key: str) -> Mapping[str, Any]:
        """A table, {} when it is not there."""
        value = self.data.get(key, {})
        if not isinstance(value, Mapping):
            raise self.bad(f"{key} is {value!r}", f"a table: [{key}]", key)
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        """A string."""
        value = self.data.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.bad(f"{self.title}: {key} is {value!r}", "a text in quotes", key)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.bad(f"{self.title}: {key} is {value!r}", "true or false", key)
        return value

    def count(self, key: str, default: int | None = None) -> int | None:
        """A whole number, at least 0."""
        value = self.data.get(key, default)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise self.bad(f"{self.title}: {key} is {value!r}", "a whole number, at least 0", key)
        return value

    def number(self, key: str) -> float | None:
        """A number, at least 0."""
        value = self.data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise self.bad(f"{self.title}: {key} is {value!r}", "a number, at least 0", key)
        return None if value is None else float(value)

    def expression(self, key: str, default: str | None = None, *, floating: bool = False) -> str | None:
        """A size expression, or a number; ``floating``: of a floating argument."""
        if key not in self.data and default is None:
            return None
        return self.as_expression(self.data.get(key, default), key, floating=floating)

    def as_expression(self, value: Any, *keys: str | int, floating: bool = False) -> str:
        """A TOML value as the text of a size expression, checked to be one."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self.bad(
                f"{self.title}: {'.'.join(map(str, keys))} is {value!r}",
                'a number or an expression such as "4 * n"',
                *keys,
            )
        text = repr(value) if isinstance(value, float) else str(value)
        self.checked(text, *keys, floating=floating)
        return text

    def checked(self, text: str, *keys: str | int, floating: bool = False) -> None:
        """Parse an expression; its error gets the place where it stands."""
        try:
            parse(text, floating)
        except ContractError as fault:
            raise relocated(fault, self.raw.where(*self.keys, *keys)) from None

    def expressions(self, key: str) -> tuple[str, ...]:
        """A list of size expressions; a single one counts as a list."""
        value = self.data.get(key, [])
        parts = value if isinstance(value, list) else [value]
        return tuple(self.as_expression(part, key) for part in parts)

    def integers(self, key: str) -> tuple[int, ...]:
        """A whole number or a list of them, at least 0 each; () when not there."""
        value = self.data.get(key, [])
        parts = value if isinstance(value, list) else [value]
        if any(not isinstance(p, int) or isinstance(p, bool) or p < 0 for p in parts):
            raise self.bad(f"{self.title}: {key} is {value!r}", "a whole number or a list of them", key)
        return tuple(parts)

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """A list of texts; () when not there. ``example``: as the error shows it."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.bad(f"{key} is {value!r}", f"a list of texts, for example {example}", key)
        return tuple(value)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A ``next`` line for a misspelt word."""
    near = difflib.get_close_matches(word, known, 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else "remove it, or use one of these"


def relocated(fault: ContractError, where: str) -> ContractError:
    """The same error, at a place."""
    return ContractError(fault.what, expected=fault.expected, where=where, fix=fault.fix)


def constraints_of(fields: Fields, floating: bool) -> Constraints:
    """What values an argument's table allows."""
    return Constraints(
        low=fields.expression("low", floating=floating),
        high=fields.expression("high", floating=floating),
        sorted=fields.flag("sorted"),
        nonnegative=fields.flag("nonnegative"),
        positive=fields.flag("positive"),
        finite=fields.flag("finite", True),
        unique=fields.flag("unique"),
    )
