"""The shape of the source: imports run one way, files and functions stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("architecture")  # each file is read once

ROOT = Path(__file__).parents[1]
DAEMON = ROOT / "daemon"
CORE = sorted((ROOT / "fsr").rglob("*.py"))
SERVICE = sorted((DAEMON / "fsrd").rglob("*.py"))
MODULES = CORE + SERVICE

# From the ground up; a part imports from lower rows only. Rows of one floor stand below each other where one
# part of it carries the others.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "files", "folders", "records"),
    ("identity", "expressions", "settings", "sandbox", "hardware", "given"),
    ("emulator", "computation"),
    ("source", "backends", "report"),
    ("analysis",),
    ("contract", "features"),
    ("prediction",),
    ("transform",),
    ("search", "testgen", "cache", "mutation"),
    ("guard", "builds", "lifting"),
    ("llm", "evaluation"),
    ("workers",),
    ("runs",),
    ("app",),
    ("bench",),
    ("cli",),
    ("__main__",),
)
ROW = {part: row for row, parts in enumerate(FLOORS) for part in parts}
EVERYWHERE = {"fsr", "fsr.__version__"}
# What an outcome can say of a candidate: records carry it, so it stands on the ground and imports nothing of fsr.
GROUND = "fsr.features.schema"
# Values and protocols of devices: what a recording holds is the language of all floors above.
FLOOR_TWO = ROW["emulator"]
READERS_OF_SETTINGS = {"app", "runs", "cli", "__main__"}
DOORS_TO_THE_DAEMON = {"fsr/cli/daemon.py", "fsr/cli/report.py"}  # commands that load it when they are used
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 450, 60, 6


@dataclass(frozen=True, slots=True)
class Module:
    """What the tests ask of a file: its lines; line and dotted name of every import of fsr or fsrd, wherever it
    stands, relative ones too; the modules it imports from at its top; (line, name, lines, parameters but self) of
    every function. Its tree is not kept: those of all files would be most of the process's objects."""

    lines: int
    imports: tuple[tuple[int, str], ...]
    at_top: tuple[str | None, ...]
    functions: tuple[tuple[int, str, int, int], ...]


@cache
def module(path: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    return Module(
        len(text.splitlines()),
        tuple(_imported(nodes, dotted(path)[:-1])),
        tuple(getattr(node, "module", None) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(_functions(nodes)),
    )


def part_of(path: Path) -> str:
    """The file or package directly beneath fsr/ that a module belongs to; '' for fsr/__init__.py."""
    first = path.relative_to(ROOT / "fsr").with_suffix("").parts[0]
    return "" if first == "__init__" else first


def dotted(path: Path) -> tuple[str, ...]:
    """The parts of a module's dotted name."""
    return path.relative_to(DAEMON if DAEMON in path.parents else ROOT).with_suffix("").parts


def _imported(nodes: list[ast.AST], package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, [base, node.module]))
            names = [f"fsr.{alias.name}" for alias in node.names] if origin == "fsr" else [origin]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] in ("fsr", "fsrd"))


def _functions(nodes: list[ast.AST]) -> Iterator[tuple[int, str, int, int]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([a for a in args if a.arg not in ("self", "cls")])
            yield node.lineno, node.name, (node.end_lineno or 0) - node.lineno + 1, count


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_part_has_its_floor():
    parts = {part_of(path) for path in CORE} - {""}
    assert parts <= set(ROW), f"give {sorted(parts - set(ROW))} a floor"


def upward(path: Path) -> Iterator[str]:
    own = part_of(path)
    for line, name in module(path).imports:
        if name.split(".")[0] == "fsrd":
            continue
        other = [*name.split("."), ""][1]
        of_protocol = name.startswith("fsr.backends.protocol") and ROW.get(own, 0) >= FLOOR_TWO
        if name in EVERYWHERE or other == own or of_protocol or name == GROUND:
            continue
        if ROW[other] >= ROW.get(own, len(FLOORS)):
            yield f"{name_of(path)}:{line} imports {name}"


def test_imports_run_one_way():
    assert [wrong for path in CORE for wrong in upward(path)] == []


def test_nothing_but_its_command_knows_the_daemon():
    known = {name_of(path) for path in CORE for _, name in module(path).imports if name.split(".")[0] == "fsrd"}
    assert known <= DOORS_TO_THE_DAEMON
    at_once = {name_of(path) for path in CORE for name in module(path).at_top if (name or "").split(".")[0] == "fsrd"}
    assert at_once == set()


def test_the_ground_imports_nothing_of_fsr():
    assert module(ROOT / Path(*GROUND.split(".")).with_suffix(".py")).imports == ()


def test_only_the_top_reads_settings():
    readers = {part_of(path) for path in CORE for _, name in module(path).imports if name == "fsr.settings"}
    assert readers <= READERS_OF_SETTINGS


def test_the_package_itself_imports_nothing():
    """`fsr lookup` answers in milliseconds: the API of the package is loaded on use."""
    assert module(ROOT / "fsr" / "__init__.py").at_top == ("__future__",)


def test_files_fit_on_a_few_screens():
    sizes = {name_of(path): module(path).lines for path in MODULES}
    assert {name: lines for name, lines in sizes.items() if lines > MOST_LINES} == {}


def test_functions_fit_on_a_screen():
    sizes = {
        f"{name_of(path)}:{line} {name}": lines for path in MODULES for line, name, lines, _ in module(path).functions
    }
    assert {name: lines for name, lines in sizes.items() if lines > MOST_FUNCTION_LINES} == {}


def test_no_file_is_a_drawer():
    drawers = {"util", "utils", "helpers", "common", "misc", "manager"}
    assert [name_of(path) for path in MODULES if path.stem in drawers] == []


def siblings(path: Path) -> Iterator[tuple[str, str, str]]:
    """(package, child, other child) of every import that crosses from one child of a package to another."""
    own = list(dotted(path))
    own = own[:-1] if own[-1] == "__init__" else own
    for _, name in module(path).imports:
        other = name.split(".")
        same = next((i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), len(own))
        if (same > 1 or own[0] == "fsrd" == other[0]) and same < min(len(own), len(other)):
            yield ".".join(own[:same]), own[same], other[same]


def in_circles(edges: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The edges that lie on a circle."""

    def reached(start: str) -> set[str]:
        seen, todo = set[str](), [start]
        while todo:
            new = edges.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    return {(a, b) for a, targets in edges.items() for b in targets if a in reached(b)}


def test_siblings_form_no_circle():
    packages: dict[str, dict[str, set[str]]] = {}
    for path in MODULES:
        for package, child, other in siblings(path):
            packages.setdefault(package, {}).setdefault(child, set()).add(other)
    found = {f"{p}: {a} <-> {b}" for p, edges in packages.items() for a, b in in_circles(edges) if a < b}
    assert found == set()


def parameters(path: Path) -> Iterator[tuple[str, int]]:
    """Every function with more parameters than is allowed, self left aside; commands of the command line take one
    for each of their options."""
    for _, name, _, count in module(path).functions:
        command = name_of(path).startswith("fsr/cli/") and name.endswith("_command")
        if count > MOST_PARAMETERS and not command:
            yield f"{name_of(path)} {name}", count


def test_functions_take_few_parameters():
    found = {name for path in MODULES for name, _ in parameters(path)}
    assert found == set()
