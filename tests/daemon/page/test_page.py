"""The page in Chromium, on a real run: every view, by keyboard, light and dark, wide and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import LARGE_ROW_SUM, Fsr
from tests.daemon.stand_in import kernel, service_of

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright axe-playwright-python")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"), pytest.mark.timeout(400)]
SCREENS = {"wide, light": ("light", 1280, 900), "phone, dark": ("dark", 390, 800)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run that won, and a folder of kernels."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "row sum \u00fc.cu").write_text(LARGE_ROW_SUM)
    result = Fsr(folder / "home").refine(folder / "row sum \u00fc.cu", "--evaluations", 4)
    assert result["status"] == "improved"
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    from fsrd.http.app import application
    from fsrd.http.server import Server

    service = service_of(folder)
    service.pause()
    kernel(folder / "kernels", "waiting")
    service.start()
    server = Server(application(service), service.place, 0)
    server.start()
    yield server.address
    service.bus.close()
    server.close()
    service.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


class Tab:
    """A page, and what it complained of."""

    def __init__(self, browser: Any, screen: str) -> None:
        scheme, width, height = SCREENS[screen]
        self.width = width
        self.page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
        self.faults: list[str] = []
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)

    def is_sound(self) -> None:
        """No fault, nothing that axe finds, nothing beside the screen."""
        assert self.faults == []
        found = axe.Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width


@pytest.mark.parametrize("screen", SCREENS)
def test_every_view_shows_what_there_is(browser: Any, address: str, folder: Path, screen: str) -> None:
    tab = Tab(browser, screen)
    page, run = tab.page, next((folder / "home" / "runs").iterdir()).name
    page.goto(address)
    page.wait_for_selector("text=waiting.cu")
    assert "#/jobs" in page.url  # the token is out of sight
    button = page.get_by_role("button", name="Cancel job 1").bounding_box()
    assert button["height"] < 40  # in one line
    assert button["x"] + button["width"] <= tab.width  # a job can be steered without moving the table
    tab.is_sound()
    page.click("nav >> text=Cache")
    page.wait_for_selector("text=row_sum")
    tab.is_sound()
    page.click("nav >> text=Runs")
    page.click(f"text={run}")
    for heading in (
        "Speed-up over time",
        "Family tree",
        "Archive",
        "Roofline",
        "Evidence",
        "The kernel and its winner",
    ):
        page.wait_for_selector(f"h2:has-text('{heading}')")
    assert page.locator(".chart svg").count() == 4
    assert page.locator(".chart svg path").count() > 20
    assert page.locator(".d2h-ins").count() > 0
    assert page.locator(".hljs-keyword").count() > 0
    for scheme in ("light", "dark"):  # a diff has colours of its own in each
        page.emulate_media(color_scheme=scheme)
        tab.is_sound()
    diff = page.get_by_role("region", name="Difference between the kernel and its winner").bounding_box()
    assert diff["height"] <= SCREENS[screen][2]  # a long winner is scrolled in its place


def test_jobs_are_steered_by_keyboard_and_change_by_themselves(browser: Any, address: str) -> None:
    tab = Tab(browser, "wide, light")
    tab.page.goto(address)
    tab.page.wait_for_selector("text=waiting.cu")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "To the content"
    tab.page.get_by_role("button", name="Cancel job 1").focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("td:has-text('cancelled')")
    assert tab.faults == []


def test_without_its_token_the_page_says_what_it_needs(browser: Any, address: str) -> None:
    tab = Tab(browser, "wide, light")
    tab.page.goto(address.partition("#")[0])
    tab.page.wait_for_selector("text=fsr daemon status")


def test_a_report_opens_from_the_disk(browser: Any, folder: Path) -> None:
    tab, out = Tab(browser, "wide, light"), folder / "report.html"
    fsr = Fsr(folder / "home")
    done = fsr.run("runs", "report", next((folder / "home" / "runs").iterdir()).name, "-o", out)
    assert done.returncode == 0, done.stderr
    tab.page.goto(out.as_uri())
    tab.page.wait_for_selector("h2:has-text('The kernel and its winner')")
    assert tab.page.locator(".chart svg").count() == 4
    tab.is_sound()
