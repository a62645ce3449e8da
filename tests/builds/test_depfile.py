"""Dependency files name the original."""

from pathlib import Path

from fsr.builds.depfile import restore_source


def test_the_original_is_named_with_its_spaces_and_marks(tmp_path: Path) -> None:
    rules = tmp_path / "k.d"
    rules.write_text("k.o : /c/w/k.cu \\\n  /src/a.cuh\n/src/a.cuh:\n")
    restore_source(str(rules), "/c/w/k.cu", "/my src/#1/$k.cu")
    assert rules.read_text() == "k.o : /my\\ src/\\#1/$$k.cu \\\n  /src/a.cuh\n/src/a.cuh:\n"
    restore_source(str(tmp_path / "absent.d"), "a", "b")
    assert [p.name for p in tmp_path.iterdir()] == ["k.d"]


def test_a_winner_in_a_folder_with_spaces_is_found(tmp_path: Path) -> None:
    rules = tmp_path / "k.d"
    rules.write_text("k.o : /my\\ home/w/k.cu\n")
    restore_source(str(rules), "/my home/w/k.cu", "k.cu")
    assert rules.read_text() == "k.o : k.cu\n"
