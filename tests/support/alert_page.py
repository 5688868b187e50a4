"""What tests do on the page of alerts, and where they look."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.support.alert_server import AlertServer
from tests.support.alerts import bad_row, good_row
from tests.support.receiver import SECRET

REFUSED = ("status 422", "422 (Unprocessable Entity)")
"""What Chromium says of a refusal that a test provokes."""


_OFTEN = """(() => {
  const wait = window.setTimeout;
  window.setTimeout = (work, pause, ...rest) => wait(work, pause === 4000 ? 250 : pause, ...rest);
})()"""
"""The page looks anew every four seconds, which would be most of what a test takes; here more often.
``test_alerts`` shows how often it does so."""


def opened(
    open_page, server: AlertServer, query: str = "", *, often: bool = True, **options
) -> Page:
    page, watch = open_page(**options)
    if often:
        page.add_init_script(_OFTEN)
    page.goto(f"{server.url}/alerts{query}")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    page.watch = watch
    return page


def ask(server: AlertServer, page: Page, path: str, body: dict) -> dict:
    """What another page of the same server would do."""
    answer = page.request.post(
        f"{server.url}/api/alerts/{path}",
        data=json.dumps(body),
        headers={"content-type": "application/json", "origin": server.url},
    )
    assert answer.status in (200, 201), answer.text()
    return answer.json()


def make_receiver(server: AlertServer, page: Page, name: str = "ops") -> None:
    body = {"name": name, "kind": "webhook", "url": server.receiver.url, "secrets": [SECRET]}
    ask(server, page, "receivers", body)


def make_rule(server: AlertServer, page: Page, name: str = "Mismatches", **more: object) -> str:
    body = {
        "name": name, "signal": "mismatch_rate", "threshold": 0.2, "window": "1m", "every": "1m",
        "delay": "0s", "min_turns": 5, "receivers": [],
    } | more  # fmt: skip
    return ask(server, page, "rules", body)["rule"]["id"]


def break_turns(server: AlertServer, **changes: object) -> None:
    server.write([bad_row(server.now + at, **changes) for at in range(1, 21)])
    server.advance(60)


def continue_turns(server: AlertServer) -> None:
    server.write([good_row(server.now + at) for at in range(1, 21)])
    server.advance(60)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name, exact=True)


def panel(page: Page) -> Locator:
    return page.get_by_role("dialog")


def sent(page: Page, told: str) -> Locator:
    """The rows of deliveries that told this."""
    table = page.get_by_role("table", name="Messages to receivers")
    cell = re.compile(rf"(^|^Told ){re.escape(told)}$")  # on cards the value has its name beside it
    return table.get_by_role("row").filter(has=page.get_by_role("cell", name=cell))
