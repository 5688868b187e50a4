"""A real Chromium, and pages that fail the test on any fault they report."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from app.ledger.rows import to_ms
from tests.support.browser import history
from tests.support.clock import START
from tests.support.live_server import LiveServer, serve

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
INSTALL = "Chromium is missing. Install it with: apt-get install chromium"
AXE = "axe-core@4.14.1"
PATIENCE_MS = 30_000
"""A busy machine draws seven charts in seconds; a page that is done is never waited for."""
AXE_CACHE = Path(__file__).parents[2] / ".cache" / "axe"


def missing(message: str) -> None:
    """What a developer's machine may lack, CI may not: the pages would go out unseen."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)


def chromium() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        missing(INSTALL)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # by module, not by session: while Playwright runs, no asyncio test can run in this thread
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A day of agents; tests that share it only read."""
    with serve(tmp_path_factory.mktemp("seeded"), history(to_ms(START))) as server:
        yield server


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """Servers of one test. Pages depend on it too, so that they are closed before these stop."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(servers: ExitStack, tmp_path: Path) -> LiveServer:
    """The same day, for a test that writes."""
    return servers.enter_context(serve(tmp_path, history(to_ms(START))))


@pytest.fixture
def empty_server(servers: ExitStack, tmp_path: Path) -> LiveServer:
    return servers.enter_context(serve(tmp_path))


@dataclass
class Watch:
    """What a page complained of; a test that provokes a complaint says which words it has."""

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def allow(self, *words: str) -> None:
        self.expected += words

    def add(self, complaint: str) -> None:
        self.found.append(complaint)

    @property
    def unexpected(self) -> list[str]:
        return [one for one in self.found if not any(words in one for words in self.expected)]


OpenPage = Callable[..., tuple[Page, Watch]]


@pytest.fixture
def open_page(browser: Browser, servers: ExitStack) -> Iterator[OpenPage]:
    """``open_page(width=…, theme=…)`` gives a page and its watch; all are checked at the end."""
    opened: list[tuple[Any, Watch]] = []

    def new(*, width: int = 1600, height: int = 900, theme: str = "light", **options: Any) -> tuple[Page, Watch]:  # fmt: skip
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            timezone_id="Europe/Berlin",
            locale="en-GB",
            # a dot that breathes is drawn sixty times a second, and no test looks at it
            **{"reduced_motion": "reduce"} | options,
        )
        page, watch = context.new_page(), Watch()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: _console(watch, said))
        page.on("pageerror", lambda error: watch.add(f"page error: {error}"))
        page.on("requestfailed", lambda request: _failed(watch, request))
        page.on("response", lambda answer: _answered(watch, answer))
        opened.append((context, watch))
        return page, watch

    yield new
    for context, _ in opened:
        context.close()
    assert [] == [one for _, watch in opened for one in watch.unexpected]


def _console(watch: Watch, said: Any) -> None:
    if said.type in ("error", "warning"):
        watch.add(f"console {said.type}: {said.text}")


def _failed(watch: Watch, request: Any) -> None:
    # a request that a newer one made stale is cancelled on purpose
    if request.failure != "net::ERR_ABORTED":
        watch.add(f"failed: {request.url} {request.failure}")


def _answered(watch: Watch, answer: Any) -> None:
    if answer.status >= 400:
        watch.add(f"status {answer.status}: {answer.url}")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, fetched once into the cache."""
    script = AXE_CACHE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            missing("axe-core needs npm. Install it with: apt-get install npm")
        AXE_CACHE.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", str(AXE_CACHE), AXE],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if got.returncode:
            missing(f"axe-core could not be fetched: {got.stderr.strip()[-200:]}")
    return script.read_text()
