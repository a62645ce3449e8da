"""Wrong inputs composed by chance: where (file, contract, plan, reference, log, setting, option) and how (damage)."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bad.inputs import (
    BODY,
    KERNEL,
    MAY_PASS,
    PLAN,
    REFUSED,
    TOML,
    TOOL,
    USAGE,
    Bad,
    Prepare,
    check,
    evidence,
    files,
    refine,
    then,
)

ABSURD: tuple[Any, ...] = (
    -1, 0, 1.5, 10**12, 2**63, 10**400, "", " ", "?", "9**9**9", "nobody", "a" * 3000, "\0", "\n", "١٢", [], {}, [[]], [1, "x"],
    {"min": 3}, True, None, "rows rows", "(" * 90, "1 if", "/etc/passwd", "\ud800", "Ω",
)  # fmt: skip
LOG = [
    {"kind": "start", "at": 1.0, "options": {"kernel": "kernel.cu", "output": None}, "source": "s", "contract": "c", "given": None,
     "known": [], "baseline": {"status": "correct"}, "seconds": 1.0},
    {"kind": "ask", "at": 2.0, "id": 0, "candidate": {}}, {"kind": "tell", "at": 3.0, "id": 0, "outcome": {}},
    {"kind": "end", "at": 4.0, "result": {"status": "improved", "best": {"speedup": 2.0}, "basis": "predicted", "evaluated": 3}},
]  # fmt: skip


def drawn(seed: int, count: int) -> Iterator[Bad]:
    """``count`` of them, the same for the same seed."""
    chance = random.Random(seed)
    makers: tuple[tuple[Callable[[random.Random, str], Bad], int], ...] = (
        (of_kernel, 5), (of_contract, 6), (of_values, 6), (of_plan, 5), (of_log, 4), (of_config, 3), (of_options, 4), (of_reference, 1),
    )  # fmt: skip
    for number in range(count):
        maker = chance.choices([m for m, _ in makers], [w for _, w in makers])[0]
        yield maker(random.Random(f"{seed}/{number}"), f"{maker.__name__[3:]}-{number}")


def damaged(chance: random.Random, data: bytes) -> bytes:
    """One to three of: cut, doubled, a byte changed, something put in, a bracket taken out, lines exchanged."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(max(1, len(data)))
        match chance.randrange(7):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[at : at + 200] * chance.choice((2, 50)) + data[at:]
            case 2:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 3:
                put = chance.choice((b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"/*", b"*/", b"//", b"\\\n", b"#if\n", b"#endif\n", b"<<<",
                                     b"(" * 3000, b"[" * 3000, b"9" * 5000, b"R\"(", "\u202e".encode(), b"\r", b"??/", b"\x1b[31m"))  # fmt: skip
                data = data[:at] + put + data[at:]
            case 4:
                places = [i for i, b in enumerate(data) if b in b"()[]{}<>\"'=,;:"]
                if places:
                    at = chance.choice(places)
                    data = data[:at] + data[at + 1 :]
            case 5:
                lines = data.split(b"\n")
                chance.shuffle(lines)
                data = b"\n".join(lines)
            case _:
                data = data.replace(
                    *chance.choice(
                        ((b"rows", b"cols"), (b"float", b"nothing"), (b"int", b"int *"), (b"{", b"{{"), (b",", b""))
                    )
                )
    return data


def command(chance: random.Random) -> tuple[str, ...]:
    """One that reads a kernel and its contract and has little else to do."""
    return chance.choice((("contract", "kernel.cu"), ("contract", "kernel.cu", "--json"), ("contract", "kernel.cu", "--entry", "row_sum"),
                          ("contract", "kernel.cu", "--write"), ("cache", "explain", "kernel.cu"), ("lookup", "kernel.cu")))  # fmt: skip


def of_kernel(chance: random.Random, name: str) -> Bad:
    """A damaged kernel file."""
    data = damaged(chance, chance.choice((KERNEL, BODY)).encode())
    return Bad(name, "drawn kernels", command(chance), MAY_PASS | {3}, files(kernel_cu=data))


def of_contract(chance: random.Random, name: str) -> Bad:
    """A damaged sidecar."""
    data = damaged(chance, TOML.encode())
    return Bad(name, "drawn contracts", command(chance), MAY_PASS | {3}, files(kernel_cu=BODY, kernel_fsr_toml=data))


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case None:
            return '"none"'
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value).replace("\\ud800", "?") if isinstance(value, str) else repr(value)


def of_values(chance: random.Random, name: str) -> Bad:
    """A sidecar that is TOML, with one value or key that makes no sense."""
    lines = TOML.splitlines()
    places = [i for i, line in enumerate(lines) if "=" in line]
    at = chance.choice(places)
    key, _, old = lines[at].partition(" = ")
    if chance.random() < 0.4 and old.startswith("{"):
        inner = chance.choice(
            ("min", "max", "timed", "role", "shape", "value", "low", "high", "dtype", "alignment", "sorted", "nope")
        )
        lines[at] = f"{key} = {{{inner} = {_toml(chance.choice(ABSURD))}}}"
    else:
        key = chance.choice((key, key, "nope", "flags", "reference", "aliasing", "entry"))
        lines[at] = f"{key} = {_toml(chance.choice(ABSURD))}"
    prepare = files(kernel_cu=BODY, kernel_fsr_toml="\n".join(lines))
    return Bad(name, "drawn values", command(chance), MAY_PASS | {3}, prepare)


def _changed(chance: random.Random, data: Any) -> Any:
    """A copy of a JSON value with one part of it gone, renamed or absurd."""
    data = copy.deepcopy(data)
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key, inner in list(part.items()) if isinstance(part, dict) else list(enumerate(part)):
            places.append((part, key))
            if isinstance(inner, dict | list):
                walk(inner)

    walk(data)
    part, key = chance.choice(places)
    match chance.randrange(4):
        case 0:
            del part[key]
        case 1 if isinstance(part, dict):
            part[f"{key}_"] = part.pop(key)
        case _:
            part[key] = chance.choice(ABSURD)
    return data


def of_plan(chance: random.Random, name: str) -> Bad:
    """A plan beside a candidate, damaged as text or changed in one part."""
    if chance.random() < 0.4:
        text: str | bytes = damaged(chance, evidence(PLAN).encode())
        codes = REFUSED | {0}
    else:
        text, codes = evidence(_changed(chance, PLAN)), REFUSED | {0}
    return Bad(name, "drawn plans", check(), codes, files(candidate_cu=KERNEL, candidate_json=text))


def of_log(chance: random.Random, name: str) -> Bad:
    """A run whose log is damaged."""
    events = copy.deepcopy(LOG[: chance.randint(1, len(LOG))])
    at = chance.randrange(len(events))
    events[at] = _changed(chance, events[at])
    data = "".join(json.dumps(e) + "\n" for e in events).encode()
    data = damaged(chance, data) if chance.random() < 0.5 else data

    def write(work: Path, home: Path) -> None:
        folder = home / "runs" / "r"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_bytes(data)

    arguments = chance.choice(
        (("runs", "list"), ("runs", "show", "r"), ("runs", "show", "r", "--json"), ("refine", "--resume", "r"))
    )
    return Bad(name, "drawn logs", arguments, MAY_PASS, then(files(), write))


def of_config(chance: random.Random, name: str) -> Bad:
    """A configuration file or environment that makes no sense."""
    arguments = chance.choice((("runs", "list"), ("cache", "list"), ("lookup", "kernel.cu"), ("cache", "verify")))
    if chance.random() < 0.4:
        key = chance.choice(("FSR_HOME", "FSR_CACHE", "FSR_WORKERS"))
        value = chance.choice(
            [str(v) for v in ABSURD if v is not None and "\0" not in str(v) and "\ud800" not in str(v)]
        )
        return Bad(
            name,
            "drawn settings",
            arguments,
            MAY_PASS | {3},
            files(),
            env={key: value.replace("{", "{{").replace("}", "}}")},
        )
    text = f"{chance.choice(('workers', 'cache', 'nope'))} = {_toml(chance.choice(ABSURD))}\n".encode()
    data = damaged(chance, text) if chance.random() < 0.5 else text

    def write(work: Path, home: Path) -> None:
        (home / "config.toml").write_bytes(data)

    return Bad(name, "drawn settings", arguments, MAY_PASS | {3}, then(files(), write))


def of_options(chance: random.Random, name: str) -> Bad:
    """An option with a value that makes no sense; where it is one after all, the rest of the line is refused."""
    option = chance.choice(
        ("--budget", "--workers", "--evaluations", "--seed", "--device", "--target", "--entry", "--resume", "-o")
    )
    value = chance.choice([str(v) for v in ABSURD if v is not None and "\0" not in str(v) and "\ud800" not in str(v)])
    kernel = files(kernel_cu=KERNEL.replace("ceil_div(rows, 64)", "ceil_div(rowz, 64)"))
    arguments = ("refine", "kernel.cu", "--device", "host", f"{option}={value}" if option != "-o" else f"-o{value}")
    return Bad(name, "drawn options", arguments, REFUSED | TOOL, kernel)


def of_reference(chance: random.Random, name: str) -> Bad:
    """A damaged reference."""
    data = damaged(chance, b"import numpy as np\ndef f(x):\n    return np.sum(x, axis=1)\n")
    toml = 'reference = "ref.py:f"\n' + TOML
    prepare: Prepare = files(kernel_cu=BODY, kernel_fsr_toml=toml, ref_py=data)
    quick = chance.random() < 0.8
    return Bad(
        name, "drawn references", ("contract", "kernel.cu") if quick else refine(), USAGE | REFUSED | {0}, prepare
    )
