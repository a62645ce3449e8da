"""Typed reading of TOML values, with errors that name the key, its line and what would have been right."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsr.contract.derived import written_out
from fsr.contract.model import Constraints
from fsr.contract.read import RawContract
from fsr.errors import ContractError
from fsr.expressions import parse

MOST_VALUES = 1024  # of a list: a launcher compares a scalar with each
VALUE_KEYS = ("low", "high", "sorted", "nonnegative", "positive", "finite", "unique", "offsets", "values", "shares")


class Fields:
    """One TOML table of a contract; ``keys`` is the path to it."""

    def __init__(self, raw: RawContract, data: Any, *keys: str | int) -> None:
        self.raw, self.keys = raw, keys
        if not isinstance(data, Mapping):
            raise self.bad(
                f"{self.title} is {data!r}",
                "a table, for example {min = 0, max = 1024}",
                fix="write a table in its place, keys and values in braces",
            )
        self.data: Mapping[str, Any] = data

    @property
    def title(self) -> str:
        """The path as TOML writes it; ``the contract`` on top."""
        return ".".join(str(k) for k in self.keys) or "the contract"

    def bad(self, what: str, expected: str, *keys: str | int, fix: str) -> ContractError:
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
            raise self.bad(f"{key} is {value!r}", f"a table: [{key}]", key, fix=f"write [{key}], and its keys below it")
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        """A string."""
        value = self.data.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.bad(f"{self.title}: {key} is {value!r}", "a text in quotes", key, fix=f'write {key} = "..."')
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.bad(
                f"{self.title}: {key} is {value!r}", "true or false", key, fix=f"write {key} = true, or leave it out"
            )
        return value

    def count(self, key: str, default: int | None = None) -> int | None:
        """A whole number, at least 0."""
        value = self.data.get(key, default)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise self.bad(
                f"{self.title}: {key} is {value!r}", "a whole number, at least 0", key,
                fix=f"write {key} = 16, say: no quotes, no fraction, no expression",
            )  # fmt: skip
        return value

    def number(self, key: str) -> float | None:
        """A number, at least 0."""
        value = self.data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise self.bad(
                f"{self.title}: {key} is {value!r}",
                "a number, at least 0",
                key,
                fix=f"write {key} = 1e-5, say: no quotes",
            )
        return None if value is None else float(value)

    def expression(self, key: str, default: str | None = None, *, floating: bool = False) -> str | None:
        """A size expression, or a number; ``floating``: of a floating argument."""
        if key not in self.data and default is None:
            return None
        return self.as_expression(self.data.get(key, default), key, floating=floating)

    def limit(self, key: str, default: str | None = None, *, floating: bool = False) -> str | tuple[str, ...] | None:
        """A size expression, or a list of them: one for each element along the last extent of a buffer."""
        value = self.data.get(key)
        if not isinstance(value, list):
            return self.expression(key, default, floating=floating)
        if not value:
            raise self.bad(
                f"{self.title}: {key} is an empty list",
                f"one {key} for each element of the last extent",
                key,
                fix=f"write one {key} for all, or leave it out",
            )
        return tuple(self.as_expression(part, key, floating=floating) for part in value)

    def as_expression(self, value: Any, *keys: str | int, floating: bool = False) -> str:
        """A TOML value as the text of a size expression, checked to be one."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self.bad(
                f"{self.title}: {'.'.join(map(str, keys))} is {value!r}",
                'a number or an expression such as "4 * n"',
                *keys,
                fix='write a number without quotes, or in quotes what it is made of: "4 * n"',
            )
        text = repr(value) if isinstance(value, float) else written_out(self.raw, str(value))
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
            raise self.bad(
                f"{self.title}: {key} is {value!r}", "a whole number or a list of them", key,
                fix=f"write {key} = 1024, say, or {key} = [512, 1024]",
            )  # fmt: skip
        return tuple(parts)

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """A list of texts; () when not there. ``example``: as the error shows it."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.bad(f"{key} is {value!r}", "a list of texts", key, fix=f"write {key} = {example}, say")
        return tuple(value)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A ``next`` line for a misspelt word."""
    near = difflib.get_close_matches(word, known, 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else "remove it, or use one of these"


def relocated(fault: ContractError, where: str) -> ContractError:
    """The same error, at a place."""
    return ContractError(fault.what, expected=fault.expected, where=where, fix=fault.fix)


def constraints_of(fields: Fields, floating: bool, value: str | tuple[str, ...] | None = None) -> Constraints:
    """What values an argument's table allows. ``value``: what every element holds, or each along the last extent.
    Raises ContractError."""
    offsets = fields.expression("offsets")
    if offsets is not None:
        return _offsets_of(fields, offsets)
    if "values" in fields.data or "shares" in fields.data:
        return _set_of(fields, floating)
    low = fields.limit("low", floating=floating) if value is None else value
    high = fields.limit("high", floating=floating) if value is None else value
    found = Constraints(
        low=_furthest(low, "min"),
        high=_furthest(high, "max"),
        sorted=fields.flag("sorted"),
        nonnegative=fields.flag("nonnegative"),
        positive=fields.flag("positive"),
        finite=fields.flag("finite", True),
        unique=fields.flag("unique"),
        lows=low if isinstance(low, tuple) else (),
        highs=high if isinstance(high, tuple) else (),
    )
    for key in ("sorted", "unique"):
        if found.by_element and getattr(found, key):
            raise fields.bad(
                f"{fields.title} is {key}, and its elements have limits of their own", f"{key} or lists, not both", key,
                fix=f"remove {key}, or say one low and one high",
            )  # fmt: skip
    return found


def _furthest(limit: str | tuple[str, ...] | None, function: str) -> str | None:
    if not isinstance(limit, tuple):
        return limit
    different = tuple(dict.fromkeys(limit))
    return different[0] if len(different) == 1 else f"{function}({', '.join(different)})"


def _offsets_of(fields: Fields, offsets: str) -> Constraints:
    """Of an array that ascends from 0 to a size expression: nothing is said beside that."""
    others = [key for key in (*VALUE_KEYS, "value") if key in fields.data and key != "offsets"]
    if others:
        raise fields.bad(
            f"{fields.title} has offsets, and {others[0]} beside them",
            "offsets alone: they ascend from 0 to what is said, and no others are tested", others[0],
            fix=f"remove {others[0]}",
        )  # fmt: skip
    return Constraints(low="0", high=offsets, sorted=True, offsets=offsets)


def _set_of(fields: Fields, floating: bool) -> Constraints:
    """Of numbers that are each one of a list: of limits its ends are all there is to say."""
    if "values" not in fields.data:
        raise fields.bad(f"{fields.title} has shares and no values", "shares beside values, a share for each", "shares",
                         fix="add values, or remove shares")  # fmt: skip
    others = [key for key in ("value", *VALUE_KEYS) if key in fields.data and key not in ("values", "shares", "sorted")]
    if others:
        raise fields.bad(
            f"{fields.title} has values, and {others[0]} beside them",
            "values, and at most shares and sorted: no others are tested", others[0], fix=f"remove {others[0]}",
        )  # fmt: skip
    values = _listed_values(fields, floating)
    shares = _listed_shares(fields, len(values))
    order = sorted(range(len(values)), key=values.__getitem__)
    return Constraints(
        low=str(min(values)), high=str(max(values)), sorted=fields.flag("sorted"),
        values=tuple(values[at] for at in order), shares=tuple(shares[at] for at in order) if shares else (),
    )  # fmt: skip


def _listed_values(fields: Fields, floating: bool) -> list[float]:
    """Those that a number is one of, as they are written; whole ones for integers."""
    found, kinds = fields.data["values"], (int, float) if floating else (int,)
    if not isinstance(found, list) or not found or not all(isinstance(v, kinds) and math.isfinite(v) for v in found):
        words, no = ("numbers", "no quotes") if floating else ("whole numbers", "no quotes, no fractions")
        raise fields.bad(
            f"{fields.title}: values is {found!r}", f"a list of {words}: all that there are", "values",
            fix=f"write values = [0, 2, 5], say: {no}, no expressions",
        )  # fmt: skip
    if len(found) > MOST_VALUES:
        raise fields.bad(f"{fields.title} has {len(found)} values", f"at most {MOST_VALUES}", "values",
                         fix="say low and high, which let all between them come too")  # fmt: skip
    twice = [v for at, v in enumerate(found) if v in found[:at]]
    if twice:
        raise fields.bad(f"{fields.title}: values has {twice[0]:g} twice", "each once", "values",
                         fix="remove one; for how often each comes add shares")  # fmt: skip
    return list(map(float if floating else int, found))


def _listed_shares(fields: Fields, count: int) -> list[float]:
    """How often each of ``count`` values comes; [] where nothing is said."""
    found = fields.data.get("shares", [])
    fits = isinstance(found, list) and len(found) == count
    if "shares" in fields.data and not (fits and all(_is_share(s) for s in found)):
        raise fields.bad(
            f"{fields.title}: shares is {found!r}", f"a list of {count} numbers above 0, one for each of the values",
            "shares", fix=f"write shares = {[1] * count}, say: weights, in the order of values",
        )  # fmt: skip
    return list(map(float, found))


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
