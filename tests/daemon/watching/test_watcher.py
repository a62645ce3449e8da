"""Every way in which files change: each kernel with a new content is told of, once, and nothing else is.

benchmarks/daemon_soak.py does the same with the whole service and 10,000 events."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fsrd.watching.folder import Folder
from fsrd.watching.index import Changes, Index
from fsrd.watching.settling import QUIET_S
from fsrd.watching.watcher import Watcher
from tests.daemon.watching import patterns
from tests.daemon.watching.patterns import STEPS_OF, World, checkout, plain_write, rename_over

SETTLED_S, PATIENCE_S = 0.7, 200.0
SAMPLE = (
    patterns.write_in_parts, patterns.rename_over, patterns.vim, patterns.emacs, patterns.jetbrains, patterns.touched,
    patterns.header, patterns.header_outside, patterns.delete_and_create, patterns.moved_folder, patterns.copied_tree,
    patterns.tree_removed, patterns.linked_folder, patterns.noise, patterns.checkout, patterns.checkout,
)  # fmt: skip


class Told:
    """What the watcher tells."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.gone: list[str] = []
        self.last = time.monotonic()

    def __call__(self, changes: Changes, found: bool) -> None:
        self.saved += changes.saved
        self.gone += changes.gone
        self.last = time.monotonic()

    def settle(self, watcher: Watcher, wanted: Callable[[], bool]) -> None:
        """Until what is wanted was told, and nothing more comes for a while."""
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE_S:
            time.sleep(0.05)
            if wanted() and time.monotonic() > max(self.last, began) + SETTLED_S:
                return


@pytest.fixture
def told() -> Told:
    return Told()


def watched(world: World, told: Told, polling: bool = False) -> Iterator[Watcher]:
    watcher = Watcher([Folder(world.root, polling=polling)], told).start()
    try:
        assert watcher.ready.wait(200)
        yield watcher
    finally:
        watcher.close()


@pytest.mark.timeout(300)
def test_each_pattern_tells_exactly_what_changed(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(3))
    for watcher in watched(world, told):
        assert sorted(told.saved) == sorted(world.kernels())
        for pattern in SAMPLE:
            before, told.saved, told.gone = world.kernels(), [], []
            world.begin()
            pattern(world)
            after = world.kernels()
            wanted = {kernel for kernel, content in after.items() if before.get(kernel) != content}
            left = set(before) - set(after)
            told.settle(watcher, lambda wanted=wanted, left=left: wanted <= set(told.saved) and left <= set(told.gone))
            assert (set(told.saved), set(told.gone)) == (wanted, left), pattern.__name__
            times = max(Counter(told.saved).values(), default=1)
            assert times <= STEPS_OF.get(pattern, 1) or world.slowest > QUIET_S / 2, pattern.__name__
            assert watcher.kernels == len(after)


@pytest.mark.timeout(120)
def test_looking_through_everything_while_a_kernel_is_saved_tells_of_it_once(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the look finds is not settled yet: half of a text, or the first of several saves."""
    for name, value in {"CHECK_S": 0.01, "RESCAN_S": 0.0, "RESCAN_SHARE": 1.0}.items():
        monkeypatch.setattr(f"fsrd.watching.watcher.{name}", value)
    world = World(tmp_path, random.Random(11))
    for watcher in watched(world, told):
        for pattern in (patterns.quick_saves, patterns.write_in_parts, patterns.emacs) * 2:
            before, told.saved = world.kernels(), []
            world.begin()
            pattern(world)
            wanted = {kernel for kernel, content in world.kernels().items() if before.get(kernel) != content}
            told.settle(watcher, lambda wanted=wanted: wanted <= set(told.saved))
            assert set(told.saved) == wanted, pattern.__name__
            assert len(told.saved) == len(wanted) or world.slowest > QUIET_S / 2, pattern.__name__
            assert told.gone == []


def test_each_file_of_a_checkout_of_500_is_told_of_once(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(5))
    checkout(world, 500)
    for watcher in watched(world, told):
        told.saved = []
        checkout(world, 500)
        told.settle(watcher, lambda: len(told.saved) >= 500)
        assert Counter(told.saved) == Counter(str(world.root / "repo" / f"g{n}.cu") for n in range(500))


@pytest.mark.timeout(120)
def test_polling_tells_the_same(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(7), kernels=4)
    for watcher in watched(world, told, polling=True):
        for pattern in (plain_write, rename_over):
            before, told.saved = world.kernels(), []
            time.sleep(0.05)
            pattern(world)
            wanted = {kernel for kernel, content in world.kernels().items() if before.get(kernel) != content}
            told.settle(watcher, lambda wanted=wanted: wanted <= set(told.saved))
            assert Counter(told.saved) == Counter(wanted), pattern.__name__


def test_a_root_that_comes_later_or_is_replaced_is_followed(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(9), kernels=1)
    away = tmp_path / "away"
    world.root.rename(away)
    for watcher in watched(world, told):
        assert told.saved == []
        away.rename(world.root)
        told.settle(watcher, lambda: bool(told.saved))
        assert sorted(told.saved) == sorted(world.kernels())
        told.saved = []
        plain_write(world)
        told.settle(watcher, lambda: bool(told.saved))
        assert len(told.saved) == 1


def test_include_and_exclude_patterns_choose(tmp_path: Path, told: Told) -> None:
    for name in ("a.cu", "old/b.cu", "lib/c.cuh", "lib/d.cu", "a.fsr.cu", "build/CMakeFiles/e.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("__global__ void k() {}")
    folder = Folder(tmp_path, ("*.cu", "lib/*.cuh"), ("/old/", "d.cu"))
    watcher = Watcher([folder], told).start()
    assert watcher.ready.wait(200)
    watcher.close()
    assert sorted(told.saved) == [str(tmp_path / "a.cu"), str(tmp_path / "lib/c.cuh")]


def test_a_file_that_is_open_is_told_of_when_it_is_closed(tmp_path: Path, told: Told) -> None:
    """However long whoever saves it takes between two parts."""
    world = World(tmp_path, random.Random(5))
    for watcher in watched(world, told):
        told.saved, kernel = [], world.pick()
        with kernel.open("a") as file:
            for part in ("// one\n", "// two\n"):
                file.write(part)
                file.flush()
                time.sleep(3 * QUIET_S)
                assert told.saved == []
        told.settle(watcher, lambda: bool(told.saved))
        assert told.saved == [str(kernel)]


def test_what_is_read_while_git_begins_to_write_is_told_of_when_it_has_ended(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, random.Random(7))
    checkout(world)
    header, lock = world.root / "repo" / "g.cuh", world.root / "repo" / ".git" / "index.lock"
    for watcher in watched(world, told):
        told.saved = []

        def looked(paths: Iterable[str], *, changed: bool = False, look: Any = watcher._index.look) -> Changes:
            if str(header) in paths and header.read_text() == "// saved\n" and not lock.exists():
                lock.touch()  # git begins as the kernels are read, and ends a while later
                threading.Timer(3 * QUIET_S, lambda: (header.write_text("// checkout\n"), lock.unlink())).start()
            return look(paths, changed=changed)

        monkeypatch.setattr(watcher._index, "look", looked)
        header.write_text("// saved\n")
        told.settle(watcher, lambda: len(told.saved) >= 10 and header.read_text().endswith("checkout\n"))
        time.sleep(4 * QUIET_S)
        assert sorted(told.saved) == sorted({*told.saved})
        assert len(told.saved) == 10
        digests = {kernel: content.digest for kernel, content in watcher.contents().items()}
        assert Index([Folder(world.root)]).scan(first=True).saved == digests


@pytest.mark.timeout(300)
def test_a_link_to_itself_does_not_end_it(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(3))
    for watcher in watched(world, told):
        loop = world.root / "loop.cu"
        loop.symlink_to(loop)
        (world.root / "self").symlink_to(world.root)  # has the whole folder looked through
        later = world.root / "later.cu"
        later.write_text("__global__ void k(float *x) {}\n")
        told.settle(watcher, lambda later=later: str(later) in told.saved)
        assert watcher.alive
        assert (str(later) in told.saved, watcher.fault) == (True, "")


@pytest.mark.timeout(300)
def test_a_name_that_is_no_text_keeps_no_other_back(tmp_path: Path, told: Told) -> None:
    world = World(tmp_path, random.Random(3))
    for watcher in watched(world, told):
        for name in ("\udcff.cu", "later.cu"):
            (world.root / name).write_text("__global__ void k(float *x) {}\n")
        told.settle(watcher, lambda: str(world.root / "later.cu") in told.saved)
        assert "later.cu" in {Path(kernel).name for kernel in told.saved}
        assert (all(kernel.isascii() for kernel in told.saved), watcher.fault) == (True, "")


@pytest.mark.timeout(300)
def test_what_cannot_be_told_now_is_told_later_and_once(tmp_path: Path, told: Told) -> None:
    world, full = World(tmp_path, random.Random(3)), [True]

    def tell(changes: Changes, found: bool) -> None:
        if full[0] and not found:
            raise OSError("no space left")
        told(changes, found)

    watcher = Watcher([Folder(world.root)], tell).start()
    try:
        assert watcher.ready.wait(200)
        first, second = (world.root / name for name in ("first.cu", "second.cu"))
        told.saved = []
        first.write_text("__global__ void k(float *x) {}\n")
        ends = time.monotonic() + PATIENCE_S
        while not watcher.fault and time.monotonic() < ends:
            time.sleep(0.02)
        assert watcher.fault == "no space left"
        second.write_text("__global__ void k(float *y) {}\n")
        time.sleep(QUIET_S)
        full[0] = False
        told.settle(watcher, lambda: not watcher.fault and len(told.saved) == 2)
        assert told.saved == [str(first), str(second)]
        assert watcher.fault == ""
    finally:
        watcher.close()
