import asyncio
import ipaddress
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from standardwebhooks import Webhook, WebhookVerificationError

from app.alerts import webhook
from app.alerts.endpoints import Endpoint, Kind
from app.alerts.guard import Guard
from app.alerts.webhook import Result, Sender, readable_pause, unsent, words_of
from app.version import VERSION
from tests.support.certificates import self_signed
from tests.support.clock import START
from tests.support.receiver import (
    DROP,
    HANG,
    OTHER_SECRET,
    PATH,
    QUERY,
    SECRET,
    Answer,
    receiving,
)

BODY = '{"type":"cache.alert.firing","title":"Ü – 24 %"}'.encode()
CANARIES = (PATH, "path-canary", "T0CANARY", "query-canary", SECRET[6:], OTHER_SECRET[6:])


def endpoint(url: str, *secrets: str, kind: Kind = Kind.WEBHOOK) -> Endpoint:
    return Endpoint(url, secrets or (SECRET,), kind, "http://127.0.0.1")


def sender(*, timeout: float = 20, hosts: Sequence[str] = ("127.0.0.1",), **options) -> Sender:
    return Sender(Guard(hosts), timeout, **options)


async def post(url: str, *secrets: str, **options) -> Result:
    return await sender(**options).send(endpoint(url, *secrets), "msg_1", BODY, time.time())


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def serving(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Bytes on a socket of loopback; the handler has the request's head, and is cancelled at the
    end."""
    tasks: set[asyncio.Task] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}?{QUERY}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(head: bytes, *parts: bytes, hang: bool = False) -> Handler:
    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in (head, *parts):
            writer.write(part)
            await writer.drain()
        if hang:
            await asyncio.Event().wait()

    return handle


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that nobody has signed."""
    made = self_signed("receiver", of=x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    file = tmp_path_factory.mktemp("tls") / "receiver.pem"
    file.write_bytes(made.key + made.certificate)
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


# What is sent


async def test_a_message_arrives_as_it_was_given_and_signed() -> None:
    async with receiving() as receiver:
        result = await post(receiver.url)
    (got,) = receiver.received
    assert Result(200, "delivered", result.duration_ms, "ok") == result
    assert 0 < result.duration_ms < 20_000
    assert BODY == got.body
    assert f"{PATH}?{QUERY}" == got.path
    assert got.verified
    assert "msg_1" == got.id
    assert "application/json" == got.headers["content-type"]
    assert f"Warmline/{VERSION}" == got.headers["user-agent"]
    assert "identity" == got.headers["accept-encoding"]


async def test_while_rotating_both_secrets_verify() -> None:
    async with receiving() as receiver:
        await post(receiver.url, OTHER_SECRET, SECRET)
    (got,) = receiver.received
    assert 2 == len(got.headers["webhook-signature"].split(" "))
    for secret in (SECRET, OTHER_SECRET):
        Webhook(secret).verify(got.body, dict(got.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 44).verify(got.body, dict(got.headers))


async def test_the_timestamp_is_that_of_the_attempt_in_whole_seconds() -> None:
    async with receiving() as receiver:
        await sender().send(endpoint(receiver.url), "msg_1", BODY, START + 0.9)
    assert str(int(START)) == receiver.received[0].timestamp


async def test_a_receiver_without_secrets_gets_no_signature() -> None:
    async with receiving() as receiver:
        slack = Endpoint(receiver.url, (), Kind.SLACK, receiver.shown)
        assert "delivered" == (await sender().send(slack, "msg_1", BODY, START)).outcome
    assert "webhook-signature" not in receiver.received[0].headers


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login canary password canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    async with receiving() as receiver:
        assert "delivered" == (await post(receiver.url)).outcome
    assert "authorization" not in receiver.received[0].headers


async def test_https_is_spoken_to_a_receiver_whose_certificate_is_trusted(
    certificate: Path, tls: ssl.SSLContext
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with serving(answering(b"HTTP/1.1 204 No Content\r\n\r\n"), tls) as url:
        result = await post(url, tls=trusting)
    assert (204, "delivered", None) == (result.status, result.outcome, result.response)


# What comes back


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_only_2xx_is_success(status: int) -> None:
    async with receiving(status) as receiver:
        result = await post(receiver.url)
    assert (status, "delivered") == (result.status, result.outcome)


@pytest.mark.parametrize("status", [300, 304, 400, 404, 410, 429, 500, 503])
async def test_any_other_status_is_told_as_it_is(status: int) -> None:
    async with receiving(status) as receiver:
        result = await post(receiver.url)
    assert (status, f"HTTP {status}") == (result.status, result.outcome)
    assert 1 == len(receiver.received)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    async with receiving() as inside:
        async with receiving(Answer(status, headers={"Location": inside.url})) as receiver:
            result = await post(receiver.url)
        assert [] == inside.received
    assert (status, f"HTTP {status}") == (result.status, result.outcome)


async def test_a_public_host_that_redirects_inside_reaches_nothing_there() -> None:
    """The guard would refuse it, and nobody asks: nothing is followed."""
    async with receiving(Answer(302, headers={"Location": "http://169.254.169.254/"})) as receiver:
        result = await post(receiver.url)
    assert "HTTP 302" == result.outcome


async def test_the_first_kilobyte_of_the_answer_is_kept() -> None:
    async with receiving(Answer(500, "ü" * 2_000)) as receiver:
        result = await post(receiver.url)
    assert "ü" * 512 == result.response


async def test_what_an_answer_quotes_of_address_and_secret_is_not_kept() -> None:
    echo = f"no hook {PATH}?{QUERY} with {SECRET}; your header: {QUERY.upper()}"
    async with receiving(Answer(404, echo), Answer(200, "x" * 1_010 + PATH)) as receiver:
        result = await post(receiver.url)
        assert "no hook [removed] with [removed]; your header: [removed]" == result.response
        result = await post(receiver.url)
        assert "x" * 1_010 + "[removed]" == result.response


async def test_replacing_does_not_make_the_answer_longer_than_a_kilobyte() -> None:
    async with receiving(Answer(500, "T0CANARY " * 200)) as receiver:
        result = await post(receiver.url)
    assert len(result.response) == 1_024


async def test_a_compressed_answer_is_not_kept() -> None:
    headers = b"HTTP/1.1 500 Oops\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
    async with serving(answering(headers, b"\x1f\x8b\x08\x00")) as url:
        result = await post(url)
    assert (500, None) == (result.status, result.response)


async def test_an_endless_answer_is_cut_off() -> None:
    closed = asyncio.Event()

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        except OSError:
            closed.set()

    async with serving(endless) as url:
        result = await post(url)
        async with asyncio.timeout(20):
            await closed.wait()
    assert (200, "delivered", "x" * 1_024) == (result.status, result.outcome, result.response)


@pytest.mark.parametrize(("status", "outcome"), [(200, "delivered"), (503, "HTTP 503")])
async def test_a_body_that_drips_counts_by_its_status(
    status: int, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is up while the body is read; what has come until then is kept."""
    reading = webhook._beginning

    def hurried(response: aiohttp.ClientResponse, _: float):
        return reading(response, asyncio.get_running_loop().time() + 0.05)

    monkeypatch.setattr(webhook, "_beginning", hurried)
    head = f"HTTP/1.1 {status} X\r\nContent-Length: 900\r\n\r\n".encode()
    async with serving(answering(head + b"wait for it", hang=True)) as url:
        result = await post(url)
    assert (status, outcome, "wait for it") == (result.status, result.outcome, result.response)


async def test_the_time_of_an_attempt_includes_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines = []
    reading = webhook._beginning

    def noted(response: aiohttp.ClientResponse, deadline: float):
        deadlines.append(deadline)
        return reading(response, deadline)

    monkeypatch.setattr(webhook, "_beginning", noted)
    async with receiving() as receiver:
        began = asyncio.get_running_loop().time()
        await post(receiver.url, timeout=20)
        ended = asyncio.get_running_loop().time()
    assert began + 20 <= deadlines[0] <= ended + 20


async def test_a_body_that_breaks_off_counts_by_its_status() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"
    async with serving(answering(head, b"half")) as url:
        result = await post(url)
    assert (200, "delivered", "half") == (result.status, result.outcome, result.response)


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("120", "120"),
        (" 7 ", "7"),
        ("0", "0"),
        ("Fri, 15 Jan 2027 08:00:00 GMT", "Fri, 15 Jan 2027 08:00:00 GMT"),
        ("Fri, 15 Jan 2027 09:00:00 +0100", "Fri, 15 Jan 2027 08:00:00 GMT"),
        ("Fri, 15 Jan 2027 08:00:00", "Fri, 15 Jan 2027 08:00:00 GMT"),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None),
        *((text, None) for text in ("", "-1", "1.5", "soon", SECRET, "9" * 13, "٣")),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_nothing_else(
    header: str | None, kept: str | None
) -> None:
    assert kept == readable_pause(header)


async def test_retry_after_comes_with_the_result() -> None:
    async with receiving(Answer(429, headers={"Retry-After": "33"})) as receiver:
        assert "33" == (await post(receiver.url)).retry_after


async def test_a_retry_after_beyond_the_calendar_does_not_undo_a_success() -> None:
    beyond = {"Retry-After": "Fri, 31 Dec 9999 23:59:59 -1200"}
    async with receiving(Answer(204, headers=beyond)) as receiver:
        result = await post(receiver.url)
    assert (204, "delivered", None) == (result.status, result.outcome, result.retry_after)


# What does not arrive


async def unused() -> str:
    async with receiving() as receiver:
        return receiver.url


async def test_nobody_listens() -> None:
    assert Result(None, "connection refused") == without_time(await post(await unused()))


def without_time(result: Result) -> Result:
    return Result(result.status, result.outcome, 0.0, result.response, result.retry_after)


async def test_a_receiver_that_hangs_is_given_up() -> None:
    async with receiving(HANG) as receiver:
        assert Result(None, "timed out") == without_time(await post(receiver.url, timeout=0.3))


async def test_a_connection_that_is_never_answered_is_given_up() -> None:
    async def silent(*_: object) -> None:
        await asyncio.Event().wait()

    async with serving(silent) as url:
        assert "timed out" == (await post(url, timeout=0.3)).outcome


async def test_headers_without_end_are_given_up() -> None:
    handler = answering(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100, hang=True)
    async with serving(handler) as url:
        assert Result(None, "timed out") == without_time(await post(url, timeout=0.3))


async def test_a_connection_that_is_dropped() -> None:
    async with receiving(DROP) as receiver:
        assert "connection closed without an answer" == (await post(receiver.url)).outcome


@pytest.mark.parametrize(
    "head", [b"SSH-2.0-canary\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999]
)
async def test_an_answer_that_is_no_http(head: bytes) -> None:
    async with serving(answering(head + b"\r\n\r\n")) as url:
        assert Result(None, "the answer is no HTTP") == without_time(await post(url))


async def test_a_certificate_that_is_not_trusted(tls: ssl.SSLContext) -> None:
    async with serving(answering(b"HTTP/1.1 200 OK\r\n\r\n"), tls) as url:
        assert Result(None, "certificate not trusted") == without_time(await post(url))


async def test_a_receiver_without_tls() -> None:
    async with receiving() as receiver:
        result = await post(receiver.url.replace("http:", "https:"))
    assert "no TLS connection" == result.outcome


async def test_a_host_that_is_not_found() -> None:
    def lookup(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    result = await Sender(Guard(lookup=lookup), 20).send(
        endpoint(f"https://a.example{PATH}"), "msg_1", BODY, START
    )
    assert Result(None, "host not found") == without_time(result)


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("https://127.0.0.1/canary", "address refused"),
        ("https://169.254.169.254/canary", "address refused"),
        ("https://[::ffff:169.254.169.254]/canary", "address refused"),
        ("http://a.example/canary", "address refused"),
        ("https://2130706433/canary", "the address is not valid"),
        ("file:///etc/canary", "the address is not valid"),
        ("canary", "the address is not valid"),
    ],
)
async def test_refused_addresses_are_not_sent_to(url: str, outcome: str) -> None:
    result = await post(url, hosts=())
    assert Result(None, outcome) == without_time(result)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
async def test_a_name_that_leads_inside_when_it_is_sent_is_refused(address: str) -> None:
    """Whatever it led to when it was saved."""
    answers = iter([["93.184.216.34"], [address]])
    guard = Guard(lookup=lambda host, port: next(answers))
    guard.check("https://a.example/")
    result = await Sender(guard, 20).send(endpoint("https://a.example/"), "msg_1", BODY, START)
    assert Result(None, "address refused") == without_time(result)


async def test_an_address_is_refused_at_the_socket_whatever_was_said_before() -> None:
    """Neither the URL nor the name server's answer is the last word."""

    class Trusting(Guard):
        def _check_addresses(self, target):
            return ["127.0.0.1"]

    async with receiving() as receiver:
        port = receiver.base.rpartition(":")[2]
        result = await Sender(Trusting(), 20).send(
            endpoint(f"https://a.example:{port}/"), "msg_1", BODY, START
        )
    assert Result(None, "address refused") == without_time(result)
    assert [] == receiver.received


@pytest.mark.parametrize("secret", ["whsec_", "whsec_é", "canary"])
async def test_a_secret_that_cannot_be_used_sends_nothing_unsigned(secret: str) -> None:
    async with receiving() as receiver:
        result = await post(receiver.url, secret)
    assert Result(None, "the secret cannot be read") == without_time(result)
    assert [] == receiver.received


async def test_a_cancellation_goes_through() -> None:
    async with receiving(HANG) as receiver:
        task = asyncio.create_task(post(receiver.url))
        await receiver.arrived()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancellation_goes_through_while_the_body_is_read() -> None:
    written = asyncio.Event()

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nhalf")
        await writer.drain()
        written.set()
        await asyncio.Event().wait()

    async with serving(handle) as url:
        task = asyncio.create_task(post(url))
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_an_error_that_nobody_foresaw_has_words_too() -> None:
    assert "sending failed" == words_of(RuntimeError(PATH))
    assert "connection closed without an answer" == words_of(OSError(PATH))
    assert "the address is not valid" == words_of(aiohttp.InvalidURL(PATH))


def test_a_result_of_nothing_sent_says_why() -> None:
    assert Result(None, "the address cannot be read") == unsent()
    assert Result(None, "the secret cannot be read") == unsent(webhook.SECRET_UNREADABLE)


# Nothing of it gets out


async def test_no_failure_shows_the_path_or_a_secret(
    caplog: pytest.LogCaptureFixture, tls: ssl.SSLContext
) -> None:
    caplog.set_level("DEBUG")
    asyncio.get_running_loop().set_debug(True)
    echo = f"{PATH}?{QUERY} {SECRET} {OTHER_SECRET[6:]}"
    located = Answer(302, echo, {"Location": PATH, "X-Echo": SECRET, "Retry-After": SECRET})
    results = []

    async def attempt(url: str, *, hosts: Sequence[str] = ("127.0.0.1",), timeout: float = 20):
        results.append(await post(url, SECRET, OTHER_SECRET, hosts=hosts, timeout=timeout))

    async with receiving(Answer(500, echo), located, DROP, HANG) as receiver:
        await attempt(receiver.url)
        await attempt(receiver.url)
        await attempt(receiver.url)
        await attempt(receiver.url, timeout=0.3)
        await attempt(receiver.url.replace("http:", "https:"))
    await attempt(receiver.url)
    await attempt(receiver.url, hosts=())
    async with serving(answering(b"HTTP/1.1 200 OK\r\n\r\n"), tls) as url:
        await attempt(url)
    for head in (f"SSH {echo}\r\n\r\n", f"HTTP/1.1 500 {echo}\r\nBad {echo}\r\n\r\n"):
        async with serving(answering(head.encode())) as url:
            await attempt(url)
    async with serving(answering(b"HTTP/1.1 200 OK\r\n\r\n" + echo.encode()[:60])) as url:
        await attempt(url)
    await attempt(f"https://a.invalid{PATH}?{QUERY}")
    await attempt(f"https://user:{SECRET}@127.0.0.1{PATH}")
    await attempt(f"gopher://127.0.0.1{PATH}?{QUERY}")
    await attempt(f"{PATH}?{QUERY}")

    outcomes = [result.outcome for result in results]
    assert [
        "HTTP 500",
        "HTTP 302",
        "connection closed without an answer",
        "timed out",
        "no TLS connection",
        "connection refused",
        "address refused",
        "certificate not trusted",
        "the answer is no HTTP",
        "the answer is no HTTP",
        "delivered",
        "host not found",
        "the address is not valid",
        "the address is not valid",
        "the address is not valid",
    ] == outcomes
    # asyncio's own debug lines are on: the log is not empty for want of a writer.
    told = [*map(repr, results), *(record.getMessage() for record in caplog.records), caplog.text]
    assert len(told) > len(results) + 1
    for text in told:
        assert not [canary for canary in CANARIES if canary.lower() in text.lower()], text
