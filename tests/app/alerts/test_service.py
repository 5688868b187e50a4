"""The whole service with alerts: turns, evaluations and deliveries beside each other."""

import asyncio
import json
import logging
import threading
from collections import defaultdict
from contextlib import asynccontextmanager, closing

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from app.alerts import store
from app.alerts.service import new_id, outcome_class
from app.alerts.webhook import Result
from app.clock import SystemClock
from app.errors import SettingsError
from app.main import create_app
from tests.support.alerts import make_rule
from tests.support.provider import AUTH, MODEL, provider
from tests.support.service import running, settings
from tests.support.site import open_site

SECRET = "whsec_Y2FuYXJ5LXNlY3JldC1jYW5hcnktc2VjcmV0LTAx"
PATH_CANARY, SECRET_CANARY = "T0-canary-path-9f3a", SECRET.removeprefix("whsec_")
RULE = """
[alerts.rules.cold]
signal = "incremental_rate"
confidence = "raw"
threshold = 0.9
window = "60s"
every = "1s"
delay = 0
min_turns = 1
receivers = [{names}]
"""


class ShiftedClock(SystemClock):
    """The real time, and what the test lets pass at once."""

    shift = 0.0

    def now(self) -> float:
        return super().now() + self.shift


class Receivers:
    """An HTTP server whose answers the test decides by path. ``None`` never answers."""

    def __init__(self) -> None:
        self.url = ""
        self.status: dict[str, int | None] = defaultdict(lambda: 200)
        self.arrived: dict[str, list[tuple[dict, bytes]]] = defaultdict(list)
        self.hanging = 0
        self.changed = asyncio.Event()
        self.release = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.arrived[request.path].append((headers, body))
        self.changed.set()
        if self.status[request.path] is None:
            self.hanging += 1
            await self.release.wait()
            self.hanging -= 1
            return web.Response(status=200)
        return web.Response(status=self.status[request.path], text=f"echo of {request.path}")

    async def got(self, path: str, count: int = 1) -> list[tuple[dict, bytes]]:
        async with asyncio.timeout(20):
            while len(self.arrived[path]) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.arrived[path]


@asynccontextmanager
async def receivers():
    it = Receivers()
    app = web.Application()
    app.router.add_post("/{tail:.*}", it.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    it.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield it
    finally:
        it.release.set()
        await runner.cleanup()


def toml(hooks: Receivers, *names: str, suffix: str = "") -> str:
    tables = "".join(
        f'[alerts.receivers.{name}]\nurl = "{hooks.url}/{name}{suffix}"\nsecrets = ["{SECRET}"]\n'
        for name in names
    )
    listed = ", ".join(f'"{name}"' for name in names)
    hosts = 'webhook_private_hosts = ["127.0.0.1"]\n'
    return hosts + tables + RULE.format(names=listed)


async def turn(live) -> None:
    """A turn of a new session: it cannot be continued, which the rule takes for a fault."""
    body = {
        "model": MODEL,
        "input": [{"role": "user", "content": "x"}],
        "prompt_cache_key": new_id("agent-"),
    }
    async with live.http.post(f"{live.url}/v1/responses", json=body, headers=AUTH) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()


async def delivery(live, receiver: str, **wanted) -> dict:
    """The newest delivery to a receiver, once it is as wanted."""
    async with asyncio.timeout(20):
        while True:
            found = (await live.get("/api/alerts/deliveries", receiver=receiver))["deliveries"]
            if found and all(found[0][name] == value for name, value in wanted.items()):
                return found[0]
            await asyncio.sleep(0.02)


def events(arrived):
    """What arrived, its signature verified by the public library."""
    return [Webhook(SECRET).verify(body.decode(), headers) for headers, body in arrived]


async def test_a_turn_makes_a_rule_fire_and_the_receiver_is_told_once(tmp_path):
    async with provider() as up, receivers() as hooks:
        config = settings(tmp_path, up.url, toml(hooks, "ops"))
        async with running(config) as live:
            await turn(live)
            (told,) = events(await hooks.got("/ops"))
            assert ("cache.alert.firing", "cold") == (told["type"], told["data"]["rule"]["name"])
            assert told["data"]["links"]["alert"].startswith("http://127.0.0.1:8787/alerts?rule=")
            found = await delivery(live, "ops", state="delivered")
            assert (1, "delivered") == (found["attempts"], found["outcome"])
            metrics = await live.text("/metrics")
            assert 'warmline_alerts{rule="cold",severity="warning",state="firing"} 1.0' in metrics
            line = 'warmline_webhook_deliveries_total{outcome="delivered",receiver="ops"} 1.0'
            assert line in metrics
        async with running(config) as live:  # a restart repeats nothing
            await turn(live)
            live.service.web.alerts.evaluator.tick()
            assert 1 == len((await live.get("/api/alerts/deliveries"))["deliveries"])
            (rule,) = (await live.get("/api/alerts/rules"))["rules"]
            assert "firing" == rule["state"]
        assert 1 == len(hooks.arrived["/ops"])


async def test_receivers_that_hang_or_fail_delay_no_turn_and_lose_no_alert(tmp_path):
    """Turns complete while one receiver has not answered yet and another one has failed."""
    clock = ShiftedClock()
    async with provider() as up, receivers() as hooks:
        hooks.status |= {"/hangs": None, "/fails": 500}
        config = settings(tmp_path, up.url, toml(hooks, "hangs", "fails", "works"))
        async with running(config, clock=clock) as live:
            await turn(live)
            await hooks.got("/hangs")
            await hooks.got("/works")
            failed = await delivery(live, "fails", state="queued", attempts=1)
            assert "HTTP 500" == failed["outcome"]
            for _ in range(5):
                await turn(live)
            assert 6 == len(await live.rows(6))
            assert 1 == hooks.hanging
            assert "sending" == (await delivery(live, "hangs"))["state"]
            assert "delivered" == (await delivery(live, "works", state="delivered"))["state"]
            hooks.release.set()
            await delivery(live, "hangs", state="delivered")
            hooks.status["/fails"] = 200
            clock.shift = 10.0
            await delivery(live, "fails", state="delivered", attempts=2)
            first, second = await hooks.got("/fails", 2)
            assert first[0]["webhook-id"] == second[0]["webhook-id"]


async def test_what_was_not_sent_before_the_end_is_sent_after_the_next_start(tmp_path):
    clock = ShiftedClock()
    async with provider() as up, receivers() as hooks:
        hooks.status["/ops"] = 503
        config = settings(tmp_path, up.url, toml(hooks, "ops"))
        async with running(config, clock=clock) as live:
            await turn(live)
            await delivery(live, "ops", state="queued", attempts=1)
        hooks.status["/ops"] = 200
        clock.shift = 10.0
        async with running(config, clock=clock) as live:
            await delivery(live, "ops", state="delivered", attempts=2)
        assert 1 == len({headers["webhook-id"] for headers, _ in hooks.arrived["/ops"]})


async def test_turns_go_on_when_the_tables_of_alerts_are_gone(tmp_path, caplog):
    config = RULE.format(names="")
    async with provider() as up, running(settings(tmp_path, up.url, config)) as live:
        with live.service.web.ledger.begin() as connection:
            connection.exec_driver_sql("DROP TABLE alert_states")
            connection.exec_driver_sql("DROP TABLE alert_rules")
        async with asyncio.timeout(10):
            while "alerts cannot be evaluated" not in caplog.text:
                await asyncio.sleep(0.02)
        await turn(live)
        await turn(live)
        assert 2 == len(await live.rows(2))
        assert 1 == caplog.text.count("alerts cannot be evaluated")
        assert "warmline_alerts{" not in await live.text("/metrics")


async def everything(live) -> list[str]:
    """Every answer to GET, for every id there is."""
    paths = (await live.get("/openapi.json"))["paths"]
    ids = {
        "{rule_id}": [rule["id"] for rule in (await live.get("/api/alerts/rules"))["rules"]],
        "{receiver_id}": [
            each["id"] for each in (await live.get("/api/alerts/receivers"))["receivers"]
        ],
        "{delivery_id}": [
            each["id"] for each in (await live.get("/api/alerts/deliveries"))["deliveries"]
        ],
        "{slug}": ["modes"],
        "{turn_id}": [row["turn_id"] for row in await live.rows()],
    }
    urls = ["/", "/requests", "/alerts", "/docs", "/openapi.json"]
    for path, methods in paths.items():
        if "get" in methods:
            names = [name for name in ids if name in path]
            urls += [path.replace(names[0], each) for each in ids[names[0]]] if names else [path]
    texts = []
    for url in urls:
        async with live.http.get(live.url + url) as answer:
            texts.append(await answer.text())
    return texts


async def test_path_and_secret_of_a_webhook_are_shown_and_kept_nowhere(
    tmp_path, tmp_path_factory, caplog, monkeypatch
):
    """Not in an answer, a page, a metric, a log line, or the bytes of database and journal; whether they
    are typed, in the settings file, in a variable, or in a file."""
    caplog.set_level(logging.DEBUG)
    secret_file = tmp_path_factory.mktemp("secrets") / "ops"
    secret_file.write_text(SECRET)
    logging.getLogger("aiohttp").setLevel(logging.DEBUG)
    async with provider() as up, receivers() as hooks:
        hooks.status["/" + PATH_CANARY] = 500
        monkeypatch.setenv("HOOK_URL", f"{hooks.url}/variable-{PATH_CANARY}")
        monkeypatch.setenv("HOOK_SECRET", SECRET.swapcase().replace("WHSEC_", "whsec_"))
        tables = toml(hooks, "ops", suffix="-" + PATH_CANARY)
        tables += '[alerts.receivers.elsewhere]\nurl = "env:HOOK_URL"\n'
        tables += f'secrets = ["file:{secret_file}", "env:HOOK_SECRET"]\n'
        config = settings(tmp_path, up.url, tables)
        async with running(config) as live:
            typed = {"name": "typed", "kind": "webhook", "secrets": [SECRET]}
            typed |= {"url": f"{hooks.url}/{PATH_CANARY}?{PATH_CANARY}=1"}
            made = await live.ask("POST", "/api/alerts/receivers", typed, status=201)
            texts = [json.dumps(made)]
            path = f"/api/alerts/receivers/{made['receiver']['id']}"
            texts.append(json.dumps(await live.ask("POST", path + "/test", {})))
            elsewhere = "/api/alerts/receivers/file-elsewhere/test"
            texts.append(json.dumps(await live.ask("POST", elsewhere, {})))
            texts.append(
                json.dumps(await live.ask("POST", "/api/alerts/receivers", typed, status=409))
            )
            for url in (f"http://10.0.0.1/{PATH_CANARY}", f"ftp://x/{PATH_CANARY}", PATH_CANARY):
                bad = typed | {"name": "bad", "url": url}
                texts.append(
                    json.dumps(await live.ask("POST", "/api/alerts/receivers", bad, status=422))
                )
            bad = typed | {"name": "bad", "secrets": [SECRET + "!"]}
            texts.append(
                json.dumps(await live.ask("POST", "/api/alerts/receivers", bad, status=422))
            )
            await turn(live)
            await delivery(live, "ops", state="delivered")
            await delivery(live, "elsewhere", state="delivered")
            failed = await delivery(live, "typed", state="queued", attempts=1)
            shown = await live.get(f"/api/alerts/deliveries/{failed['id']}")
            assert "echo of" in shown["attempt_log"][0]["response"]
            texts += await everything(live)
            texts += [repr(live.service), repr(live.service.settings), caplog.text]
            for file in tmp_path.rglob("*"):
                if file.is_file() and file.name != "warmline.toml":
                    texts.append(file.read_bytes().decode("latin-1"))
        texts.append(caplog.text)
        for file in tmp_path.rglob("*"):
            if file.is_file() and file.name != "warmline.toml":
                texts.append(file.read_bytes().decode("latin-1"))
    assert hooks.arrived[f"/ops-{PATH_CANARY}"]
    assert hooks.arrived[f"/{PATH_CANARY}"]
    (arrived,) = events(hooks.arrived[f"/variable-{PATH_CANARY}"])
    assert arrived["type"] == "cache.alert.test"
    assert hooks.url in "".join(texts)  # so much is shown
    for text in texts:
        assert PATH_CANARY not in text
        assert SECRET_CANARY.lower() not in text.lower()


async def test_a_rule_that_tells_nobody_who_is_there_stops_the_start(tmp_path):
    config = settings(tmp_path, "http://127.0.0.1:1/v1", RULE.format(names='"nobody"'))
    app = create_app(config)
    with pytest.raises(SettingsError) as caught:
        async with app.router.lifespan_context(app):
            pass
    assert "[alerts.rules.cold]" in str(caught.value)
    assert "nobody, which is no receiver" in str(caught.value)


def test_a_rule_of_the_page_whose_receiver_went_from_the_file_is_told_of_at_the_start(
    tmp_path, caplog
):
    """The service must start; and nobody would be told of that rule's alerts."""
    with_ops = '[alerts.receivers.ops]\nurl = "https://a.example/x"\nkind = "slack"\n'
    with closing(open_site(tmp_path, toml=with_ops)) as before:
        store.create_rule(before.engine, make_rule(), before.web.alerts.now())
    assert "ops" not in caplog.text
    with closing(open_site(tmp_path)):
        assert "rule rule-1 tells ops, which is no receiver" in caplog.text


async def test_an_evaluation_that_hangs_holds_up_neither_a_turn_nor_the_end(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("app.alerts.service.CLOSE_SECONDS", 0.05)
    release, entered = threading.Event(), asyncio.Event()
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        alerts, loop = live.service.web.alerts, asyncio.get_running_loop()
        ticks = []

        def tick() -> int:
            ticks.append(1)
            loop.call_soon_threadsafe(entered.set)
            release.wait(20)
            return 0

        monkeypatch.setattr(alerts.evaluator, "tick", tick)
        async with asyncio.timeout(10):
            await entered.wait()
        await turn(live)
        assert 1 == len(await live.rows(1))
        assert [1] == ticks  # never two at once
    assert not release.is_set()
    assert live.service.web.alerts is None
    release.set()


def test_ids_are_not_to_be_guessed():
    found = {new_id("rule_") for _ in range(100)}
    assert 100 == len(found)
    assert all(each.startswith("rule_") and len(each) == 29 for each in found)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, "delivered"), (204, "delivered"), (302, "http_3xx"), (410, "http_4xx"),
     (503, "http_5xx"), (None, "no_answer")],
)  # fmt: skip
def test_outcomes_are_few_words(status, expected):
    assert expected == outcome_class(Result(status, "x"))
