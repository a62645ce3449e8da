"""What counts as a new content while files come one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsrd.watching import settling
from fsrd.watching.folder import Folder
from fsrd.watching.index import Index
from fsrd.watching.watcher import Watcher

KERNEL = '#include "near.cuh"\n__global__ void k(float *x) { x[0] = 1.0f; }\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.cu").write_text(KERNEL)
    (tmp_path / "near.cuh").write_text("// near\n")
    return tmp_path.resolve()


def index(root: Path) -> Index:
    found = Index([Folder(root)])
    found.scan(first=True)
    return found


def test_a_kernel_whose_header_comes_in_a_moment_is_told_of_once(root: Path) -> None:
    found = index(root)
    copied = root / "copied"
    copied.mkdir()
    (copied / "a.cu").write_text(KERNEL)
    assert not found.look([str(copied / "a.cu")], changed=True)
    assert found.missing == (str(copied / "a.cu"),)
    (copied / "near.cuh").write_text("// it came\n")
    assert list(found.look(found.missing).saved) == [str(copied / "a.cu")]
    assert found.missing == ()


def test_a_header_that_goes_and_comes_back_is_no_new_content_and_one_that_stays_away_is(root: Path) -> None:
    found, header, kernel = index(root), root / "near.cuh", str(root / "a.cu")
    header.unlink()
    assert not found.look([str(header)], changed=True)
    header.write_text("// near\n")
    assert not found.look([str(header), *found.missing], changed=True)
    header.unlink()
    assert not found.look([str(header)], changed=True)
    assert list(found.look(found.missing).saved) == [kernel]
    assert not found.look([kernel], changed=True)  # it was told of: nothing is waited for any more


def test_at_the_start_nothing_is_waited_for(root: Path) -> None:
    (root / "near.cuh").unlink()
    assert list(Index([Folder(root)]).scan(first=True).saved) == [str(root / "a.cu")]


def test_links_that_lead_elsewhere_by_now_are_followed_anew(root: Path) -> None:
    (root / "one").mkdir()
    (root / "two").mkdir()
    for name in ("one", "two"):
        (root / name / "k.cu").write_text(f"// {name}\n{KERNEL}")
    (root / "link").symlink_to("one")
    found = index(root)
    assert str(root / "link" / "k.cu") not in found.kernels
    (root / "link").unlink()
    (root / "link").symlink_to("two")
    (root / "two" / "k.cu").write_text(f"// two anew\n{KERNEL}")
    assert list(found.look([str(root / "link" / "k.cu")], changed=True).saved) == [str(root / "two" / "k.cu")]


def test_what_was_written_a_moment_ago_is_not_read_yet_however_late_its_notices_come(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    watcher = Watcher([Folder(root)], lambda changes, found: saved.extend(changes.saved))
    watcher._index.scan(first=True)
    monkeypatch.setattr(settling, "QUIET_S", 0.0)  # the notice of a write before this one came just now
    watcher._settling.note(str(root / "a.cu"))
    (root / "a.cu").write_text(f"// half\n{KERNEL}")
    monkeypatch.setattr("fsrd.watching.watcher.QUIET_S", 3600.0)
    assert not watcher._settled()
    monkeypatch.setattr("fsrd.watching.watcher.QUIET_S", 0.0)
    assert list(watcher._settled().saved) == [str(root / "a.cu")]
