"""What the overview costs with a large ledger: calls, payloads, and when a browser shows it.

A made-up ledger of thirty days on SQLite, the dashboard over it on a port, and a real Chromium. The
page counts as shown when its key figures and the table of continuation and cache stand on it. It is
navigated to in a window that is open and has come to rest: Chromium opens a window with pages of
its own, which take half a second of two cores.

    python -m benchmarks.dashboard [--rows 1000000] [--folder DIR]

With ``--folder`` the ledger stays there, as with ``benchmarks.ledger``, and the next run uses it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import plotly.graph_objects as go
from playwright.sync_api import Browser, sync_playwright

from app.charts.chart import Chart
from app.charts.registry import CHARTS
from app.ledger.filters import Filter
from app.ledger.rows import iso
from app.web.answers import encode
from app.web.figures import LedgerSource
from benchmarks.ledgering import ledgers
from benchmarks.ledgering.month import END
from benchmarks.ledgering.reading import ZONE, views
from benchmarks.ledgering.result import Result, best_ms
from tests.support.live_server import LiveServer, serve

CALL_MS = 60.0
PAYLOAD_KB = 200.0
SHOWN_MS = 300.0
FASTER = 20.0
ONSET = 5_000
"""Breaks of the worst cause up to which the page asks for its onset."""
LOADS = 5
REST_MS = 3_000
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
_WATCH = """
addEventListener("DOMContentLoaded", () => {
  const watch = new MutationObserver(() => {
    const figure = document.getElementById("figure-generation");
    if (!/[0-9]/.test(figure?.textContent) || !document.querySelector("#two-by-two tr")) return;
    watch.disconnect();
    const plotly = "Plotly" in window;
    requestAnimationFrame(() => setTimeout(() => { window.shown = [performance.now(), plotly]; }));
  });
  watch.observe(document.body, { childList: true, subtree: true, characterData: true });
});
"""


def calls(server: LiveServer, length: str, view: Filter) -> Iterator[Result]:
    """Each call of the page by itself, whole: query, JSON and the way through the server."""
    query = _query(view)
    causes = "/api/breaks?limit=5"
    groups = json.loads(_get(f"{server.url}{causes}&{query}"))["groups"]
    paths = ["/api/summary", *(f"/api/charts/{slug}" for slug in CHARTS), causes]
    if groups[0]["turns"] <= ONSET:
        paths.append(f"/api/breaks/{quote(groups[0]['id'])}?limit=1")
    for path in paths:
        url = f"{server.url}{path}{'&' if '?' in path else '?'}{query}"
        kb = len(_get(url)) / 1_000
        yield Result(f"{length}, {path}", best_ms(partial(_get, url), LOADS), "ms", CALL_MS)
        yield Result(f"{length}, {path}: CPU", min(_cpu_ms(url) for _ in range(3)), "ms")
        yield Result(f"{length}, {path}: payload", kb, "kB", PAYLOAD_KB)


def _get(url: str) -> bytes:
    with urlopen(url, timeout=120) as answer:
        return bytes(answer.read())


def _cpu_ms(url: str) -> float:
    """Of server and asking together, all threads: what a busy machine leaves alone."""
    begin = time.process_time()
    _get(url)
    return (time.process_time() - begin) * 1_000


def shown(browser: Browser, server: LiveServer, length: str, view: Filter) -> Iterator[Result]:
    taken, before = [], []
    with browser.new_context(timezone_id=ZONE.key, viewport={"width": 1600, "height": 900}) as one:
        one.add_init_script(_WATCH)
        page = one.new_page()
        for _ in range(LOADS):
            page.goto("about:blank")
            page.wait_for_timeout(REST_MS)
            page.goto(f"{server.url}/?{_query(view)}")
            ms, with_plotly = page.wait_for_function(
                "() => window.shown", timeout=120_000
            ).json_value()
            taken.append(ms)
            before.append(not with_plotly)
    yield Result(f"{length}, shown in Chromium, first load", taken[0], "ms")
    yield Result(f"{length}, shown in Chromium, best of {LOADS}", min(taken), "ms", SHOWN_MS)
    yield Result(
        f"{length}, shown before the chart library", sum(before), f"of {LOADS}", LOADS, True
    )


def figures(server: LiveServer, view: Filter) -> Iterator[Result]:
    """Writing a figure that is built, beside the same by Plotly's own objects."""
    source = LedgerSource(server.site.engine, view, END)
    for entry in CHARTS.values():
        built = entry.build(source)
        plain = best_ms(partial(_plain, built), 50)
        objects = best_ms(partial(_objects, built), 5)
        yield Result(f"JSON of {entry.slug}", plain, "ms")
        yield Result(f"JSON of {entry.slug}: so much faster", objects / plain, "x", FASTER, True)


def _plain(built: Chart) -> bytes:
    return encode({"data": built.data, "layout": built.layout})


def _objects(built: Chart) -> str:
    return str(go.Figure(data=built.data, layout=built.layout).to_json())


def _query(view: Filter) -> str:
    return urlencode({"from": iso(view.start), "to": iso(view.end), "tz": ZONE.key})


def _all(server: LiveServer) -> Iterator[Result]:
    for length, view in views().items():
        yield from calls(server, length, view)
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for length, view in views().items():
            yield from shown(browser, server, length, view)
        browser.close()
    yield from figures(server, views()["24 h"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where the ledger is kept; by default it is not")
    given = parser.parse_args()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="warmline-dashboard-"))
    place = folder / f"{given.rows}"
    place.mkdir(parents=True, exist_ok=True)
    missed = []
    try:
        ledger = ledgers.sqlite_ledger(place, given.rows)
        with (
            tempfile.TemporaryDirectory() as beside,
            serve(Path(beside), database=str(ledger)) as server,
        ):
            for result in _all(server):
                print(result.line(), flush=True)
                missed += [] if result.met else [result.line()]
    finally:
        if not given.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["\nmissed:", *missed]) if missed else "\nall reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
