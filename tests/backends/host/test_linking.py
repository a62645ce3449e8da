"""How the objects of an image are linked: by the linker itself where clang tells how, else through the compiler."""

from __future__ import annotations

from pathlib import Path

from fsr.backends.host import linking
from fsr.backends.host.linking import link_command
from fsr.backends.host.runtime import Compiler, find_compiler

UNIT, OBJECTS, OUTPUT = Path("/b/unit.o"), [Path("/r/one.o"), Path("/r/two.o")], Path("/b/unit.so")


class Told:
    def __init__(self, stderr: str, returncode: int = 0) -> None:
        self.stderr, self.returncode = stderr, returncode


def command(monkeypatch, told: Told, family: str = "clang") -> list[str]:
    linking._linker.cache_clear()
    monkeypatch.setattr(linking, "run_tool", lambda _command: told)
    return link_command(Compiler("/bin/c++", family, "22.1"), UNIT, OBJECTS, OUTPUT)


def test_the_linker_is_called_itself_where_clang_tells_how(monkeypatch):
    told = Told(
        'clang version 22\n "/usr/bin/ld" "-shared" "-o" "fsr-output.so" "/l/crti.o" "/r/one.o" "/r/two.o" "-lm"'
    )
    assert command(monkeypatch, told) == [
        "/usr/bin/ld", "-shared", "-o", "/b/unit.so", "/l/crti.o", "/b/unit.o", "/r/one.o", "/r/two.o", "-lm"
    ]  # fmt: skip


def test_else_the_compiler_is(monkeypatch):
    through = ["/bin/c++", "-o", "/b/unit.so", "/b/unit.o", "/r/one.o", "/r/two.o", "-lm"]
    for told in (
        Told(""),
        Told("an error", 1),
        Told(' "ld" "-o" "fsr-output.so" "/r/one.o" "/r/two.o"'),
        Told('"/x" "-"'),
    ):
        words = command(monkeypatch, told)
        assert [w for w in words if w in through] == through
    assert command(monkeypatch, Told("", 0), "gcc")[0] == "/bin/c++"


def test_of_the_compiler_here(tmp_path):
    linking._linker.cache_clear()
    found = find_compiler()
    objects = [tmp_path / "one.o"]
    objects[0].touch()
    words = link_command(found, tmp_path / "unit.o", objects, tmp_path / "unit.so")
    assert (words[0] == found.path) == (found.family != "clang")
    assert str(tmp_path / "unit.so") in words
