"""docs/api.md says what the API does."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from app.alerts.webhook import Result
from app.charts.registry import CHARTS
from app.ledger.filters import PARAMETERS
from tests.support.alerts import make_rule, write
from tests.support.rows import START_MS, make_row
from tests.support.site import open_site

FINGERPRINT = "9f2c41d07a3be815"
SECRET = "whsec_" + "c2VjcmV0" * 6
DOC = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("ledger"))
    parted = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": FINGERPRINT}
    opened.write([make_row(started_at=START_MS - 1), make_row(started_at=START_MS - 2, **parted)])
    yield opened
    opened.close()


def example(heading):
    """The JSON below a heading; ROW and TRACE stand for objects, dots for any text."""
    section = re.split(r"\n##+ ", DOC.split(f"# {heading}\n", 1)[1], maxsplit=1)[0]
    text = re.search(r"```json\n(.*?)```", section, re.DOTALL).group(1)
    return json.loads(re.sub(r"(?<!\")\b(ROW|TRACE|RULE)\b(?!\")", "{}", text))


def missing(shown, real, path=""):
    """Keys of the example that the answer lacks."""
    if isinstance(shown, dict) and isinstance(real, dict):
        for key, value in shown.items():
            if key == "…":
                continue
            if key not in real:
                yield f"{path}/{key}"
            else:
                yield from missing(value, real[key], f"{path}/{key}")
    elif isinstance(shown, list) and isinstance(real, list) and shown and real:
        yield from missing(shown[0], real[0], f"{path}[]")


@pytest.mark.parametrize(
    ("heading", "path"),
    [
        ("`GET /api/summary`", "/api/summary"),
        ("`GET /api/requests`", "/api/requests"),
        ("`GET /api/dimensions`", "/api/dimensions"),
        ("`GET /api/sessions`", "/api/sessions"),
        ("`GET /api/sessions/{session_key}`", "/api/sessions/key-session-a"),
        ("`GET /api/sessions/{session_key}/turns`", "/api/sessions/key-session-a/turns"),
        ("`GET /api/witnesses`", "/api/witnesses"),
        ("`GET /api/drift`", "/api/drift"),
        ("`GET /api/breaks`", "/api/breaks"),
        ("`GET /api/breaks/{group}`", f"/api/breaks/{FINGERPRINT}"),
        ("`GET /api/causes`", "/api/causes"),
        ("`GET /api/resets`", "/api/resets"),
        ("`GET /api/charts`", "/api/charts"),
        ("`GET /api/charts/{slug}`", "/api/charts/modes"),
        ("`GET /api/settings`", "/api/settings"),
        ("`GET /api/connect`", "/api/connect"),
        ("`GET /api/import`", "/api/import"),
        ("`GET /api/status`", "/api/status"),
    ],
)
def test_every_key_of_an_example_is_in_the_answer(site, heading, path):
    ignored = {"/turns/by_kind", "/turns/by_status"}
    found = list(missing(example(heading), site.get(path)))
    assert [key for key in found if key.rpartition("/")[0] not in ignored] == []


def test_every_header_of_ours_is_told():
    sources = (Path(__file__).parents[2] / "app").rglob("*.py")
    found = {
        name for path in sources for name in re.findall(r"x-warmline-\w[\w-]*", path.read_text())
    }
    assert {"x-warmline-epoch-reset", "x-warmline-turn"} < found
    assert [name for name in sorted(found) if name not in DOC] == []


@pytest.fixture(scope="module")
def alerted(tmp_path_factory):
    """A rule that fired once, told a receiver, and is silenced."""
    toml = f'[alerts.receivers.ops]\nurl = "https://ops.example/x"\nsecrets = ["{SECRET}"]\n'
    opened = open_site(tmp_path_factory.mktemp("alerts"), toml=toml)
    opened.web.received = lambda: [
        {
            "at": "…",
            "webhook_id": "msg_1",
            "verified": True,
            "type": "cache.alert.firing",
            "title": "…",
            "body": {},
        }
    ]
    opened.ask("POST", "/api/alerts/rules", make_rule().as_dict(), status=201)
    opened.ask("POST", "/api/alerts/silences", {"for": "2h", "matchers": {}}, status=201)
    silence = opened.get("/api/alerts/silences")["silences"][0]
    opened.ask("DELETE", f"/api/alerts/silences/{silence['id']}")
    write(opened.engine, START_MS + 10_000, bad=3, good=1)
    opened.clock.advance(60)
    opened.web.alerts.evaluator.tick()
    asyncio.run(_attempted(opened))
    yield opened
    opened.close()


async def _attempted(opened):
    """One attempt at what is due, without a network."""

    class NoNetwork:
        async def send(self, addressed, delivery_id, body, timestamp):
            return Result(200, "delivered", 1.0, "ok")

    opened.web.alerts.courier._sender = NoNetwork()
    await opened.web.alerts.courier.deliver_due()


@pytest.mark.parametrize(
    "heading",
    [
        "`GET /api/alerts/rules`",
        "`GET /api/alerts/receivers`",
        "`GET /api/alerts/events`",
        "`GET /api/alerts/deliveries`",
        "`GET`, `POST /api/alerts/silences`",
        "`GET /api/alerts/received`",
    ],
)
def test_every_key_of_an_example_of_alerts_is_in_the_answer_and_the_other_way_round(
    alerted, heading
):
    path = heading.rpartition(" ")[2].strip("`")
    shown, real = example(heading), alerted.get(path)
    assert list(missing(shown, real)) == []
    cut = ("/definition", "/last_delivery", "events[]/reading")
    found = [key for key in missing(real, shown) if key.rpartition("/")[0].endswith(cut) is False]
    assert found == []


def test_a_delivery_and_a_backtest_are_as_their_examples(alerted):
    (delivery,) = alerted.get("/api/alerts/deliveries")["deliveries"]
    detail = alerted.get(f"/api/alerts/deliveries/{delivery['id']}")
    assert list(missing(example("`GET /api/alerts/deliveries/{delivery_id}`"), detail)) == []
    assert set(delivery) <= set(detail)
    body = {"rule": make_rule().as_dict(), "from": "now-10m", "to": "now"}
    told = alerted.ask("POST", "/api/alerts/backtest", body)
    shown = example("`POST /api/alerts/backtest`")
    assert list(missing(shown, told)) == []
    assert set(told) == set(shown)


def test_the_summary_holds_nothing_that_is_not_shown(site):
    real = site.get("/api/summary")
    shown = example("`GET /api/summary`")
    ignored = {"/turns/by_kind", "/turns/by_status"}
    found = [key for key in missing(real, shown) if key.rpartition("/")[0] not in ignored]
    assert found == []


def test_every_endpoint_is_named(site):
    for path in site.get("/openapi.json")["paths"]:
        assert path in DOC, path


def test_every_filter_chart_and_error_of_ours_is_named():
    for name in (*PARAMETERS, *CHARTS):
        assert f"`{name}`" in DOC, name
