import asyncio
import socket
import threading
from collections.abc import Sequence

import pytest

from app.alerts.guard import LOOKUPS, AddressRefusedError, Guard, Target, look_up

PUBLIC = "93.184.216.34"
METADATA = "169.254.169.254"


def names(**known: list[str]):
    """A name server; the names are written with _ for dots."""

    def lookup(host: str, port: int) -> Sequence[str]:
        try:
            return known[host.replace(".", "_").replace("-", "_")]
        except KeyError:
            raise OSError("no such host") from None

    return lookup


def guard(*private_hosts: str, **known: list[str]) -> Guard:
    return Guard(private_hosts, lookup=names(**known))


def refusal(call, *arguments) -> AddressRefusedError:
    with pytest.raises(AddressRefusedError) as caught:
        call(*arguments)
    assert 422 == caught.value.status
    assert "canary" not in str(caught.value)
    return caught.value


def info(address: str):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 443))


def test_a_public_https_address_is_read() -> None:
    assert Target("hooks.example.com", 443, "https", "https://hooks.example.com") == (
        guard(hooks_example_com=[PUBLIC]).check("https://Hooks.Example.COM./canary?canary=1")
    )


@pytest.mark.parametrize(
    ("url", "host", "shown"),
    [
        ("https://a.example:8443/canary", "a.example", "https://a.example:8443"),
        ("https://a.example:443/canary", "a.example", "https://a.example"),
        ("https://a.example?canary", "a.example", "https://a.example"),
        ("https://b\u00fccher.example/canary", "xn--bcher-kva.example", None),
        ("https://1.1.1.1/canary", "1.1.1.1", "https://1.1.1.1"),
        ("https://[2606:4700:4700:0::1111]:44/", "2606:4700:4700::1111", None),
        ("HTTPS://a.example/canary/@user", "a.example", "https://a.example"),
    ],
)
def test_all_that_is_shown_is_scheme_host_and_port(url: str, host: str, shown: str | None) -> None:
    target = guard().check_url(url)
    assert host == target.host
    if shown:
        assert shown == target.shown
    assert "canary" not in repr(target)


@pytest.mark.parametrize(
    "url",
    [
        *("", "canary", "//a.example/canary", "https:", "https:///canary", "https://"),
        *("file:///etc/canary", "gopher://a.example/canary", "ftp://a.example/canary"),
        *("javascript:canary", "unix:/run/canary", "ws://a.example/canary"),
        *("https://canary:pw@a.example/", "https://canary@a.example/", "https://@a.example/"),
        "https://:canary@a.example/",
        "https://a.example\\@canary.example/",
        *("https://a.example/#canary", "https://a.example/canary#"),
        *("https://a.example:0/canary", "https://a.example:99999/canary"),
        *("https://a.example:canary/", "https://a example/canary", "https://a.example/\ncanary"),
        *("https://a.example/\x00canary", " https://a.example/canary", "https://a..b/canary"),
        *("https://[::1/canary", "https://[fe80::1%25eth0]/canary", "https://[v1.fe80]:0/canary"),
        *("https://127.0.0.%31/canary", "https://a_*.example/canary"),
        "https://" + "a" * 64 + ".example/canary",
        "https://a.example/" + "canary" * 400,
        # Spellings of 127.0.0.1 that a resolver may take for it:
        *("https://2130706433/canary", "https://0x7f000001/canary", "https://0177.0.0.1/canary"),
        *("https://127.1/canary", "https://127.0.0.0x1/canary", "https://017700000001./canary"),
        *("https://256.256.256.256/canary", "https://1.2.3.4.5/canary", "https://a.0x/canary"),
    ],
)
def test_what_is_no_usable_address_is_refused(url: str) -> None:
    assert "bad_address" == refusal(guard("127.0.0.1").check_url, url).code


@pytest.mark.parametrize("url", ["https://a:canary/", "https://[canary/", "https://\u200bcanary/"])
def test_nothing_of_the_address_hangs_on_the_error(url: str) -> None:
    """Whoever reports errors follows the chain of those behind them."""
    error: BaseException | None = refusal(guard().check_url, url)
    while error is not None:
        assert "canary" not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("url", [None, 7, ["https://a.example/"]])
def test_what_is_no_text_is_refused(url) -> None:
    assert "bad_address" == refusal(guard().check_url, url).code


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.7"),
        *("172.16.0.1", "192.168.1.1", "100.64.0.1", "[fc00::1]", "[fd00::1]", "224.0.0.1"),
        *("[ff02::1]", "[64:ff9b::10.0.0.1]", "[2002:a00:1::1]", "255.255.255.255"),
        *("localhost", "LOCALHOST.", "api.localhost", "１２７。０。０。１"),
    ],
)
def test_private_hosts_are_refused_and_the_setting_is_named(host: str) -> None:
    error = refusal(guard().check_url, f"https://{host}/canary")
    assert "address_refused" == error.code
    assert "not public" in error.message
    assert "webhook_private_hosts" in error.hint


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.169.254.", "[::ffff:169.254.169.254]", "[fe80::1]"),
        *("[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "100.100.100.200"),
    ],
)
def test_metadata_hosts_are_refused(host: str) -> None:
    error = refusal(guard().check_url, f"https://{host}/canary")
    assert "address_refused" == error.code
    assert "metadata" in error.message
    assert "webhook_private_hosts" in error.hint


def test_http_is_refused_except_for_a_listed_host() -> None:
    error = refusal(guard().check_url, "http://a.example/canary")
    assert "address_refused" == error.code
    assert "Use https, or name a.example in the setting webhook_private_hosts." == error.hint
    assert "http://a.example" == guard("a.example").check_url("http://a.example/canary").shown


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8099/canary"),
        ("[::1]", "http://[::1]:8099/canary"),
        ("::1", "https://[0:0::1]/canary"),
        ("localhost", "http://localhost/canary"),
        ("Hook.Internal.", "http://hook.internal/canary"),
        (METADATA, f"http://{METADATA}/canary"),
    ],
)
def test_the_setting_allows_a_host(listed: str, url: str) -> None:
    known = {"localhost": ["127.0.0.1", "::1"], "hook_internal": ["10.0.0.7"]}
    known |= {"127_0_0_1": ["127.0.0.1"], "::1": ["::1"], METADATA.replace(".", "_"): [METADATA]}
    Guard([listed], lookup=names(**known)).check(url)


def test_the_setting_allows_no_other_host() -> None:
    watch = guard("hook.internal", hook_internal=["10.0.0.7"], other_internal=["10.0.0.7"])
    watch.check("https://hook.internal/canary")
    for url in ("https://other.internal/", "https://x.hook.internal/", "https://10.0.0.7/"):
        refusal(watch.check, url)


@pytest.mark.parametrize("address", [METADATA, f"::ffff:{METADATA}", "fe80::1", "fd00:ec2::254"])
def test_a_listed_name_does_not_open_metadata(address: str) -> None:
    watch = guard("hook.internal", hook_internal=["10.0.0.7", address])
    error = refusal(watch.check, "https://hook.internal/canary")
    assert "metadata" in error.message


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.7", METADATA, "::1", "64:ff9b::7f00:1", "2002:a00:1::", "odd"]
)
def test_a_public_name_that_leads_inside_is_refused(address: str) -> None:
    error = refusal(guard(a_example=[PUBLIC, address]).check, "https://a.example/canary")
    assert "address_refused" == error.code
    assert "https://a.example leads to" in error.message


def test_a_name_that_leads_nowhere_is_refused() -> None:
    for watch in (guard(), guard(a_example=[])):
        error = refusal(watch.check, "https://a.example/canary")
        assert "bad_address" == error.code
        assert "The host a.example has no address." == error.message


async def test_the_addresses_are_looked_up_beside_the_event_loop() -> None:
    seen = []

    def lookup(host: str, port: int) -> list[str]:
        seen.append((host, port, threading.current_thread() is threading.main_thread()))
        return [PUBLIC]

    watch = Guard(lookup=lookup)
    assert [PUBLIC] == await watch.resolve_check(watch.check_url("https://a.example:8443/"))
    assert [("a.example", 8443, False)] == seen


async def test_a_name_server_that_hangs_holds_up_only_its_own_names() -> None:
    """However often one of its names is asked for, and whoever gives up."""
    release, asked = threading.Event(), []

    def lookup(host: str, port: int) -> list[str]:
        asked.append(host)
        if host == "hangs.example":
            release.wait(30)
        return [PUBLIC]

    watch = Guard(lookup=lookup)
    hanging = watch.check_url("https://hangs.example/")
    waiting = [asyncio.ensure_future(watch.resolve_check(hanging)) for _ in range(2 * LOOKUPS)]
    other = asyncio.ensure_future(watch.resolve_check(watch.check_url("https://a.example/")))
    try:
        async with asyncio.timeout(5):
            assert [PUBLIC] == await other
        waiting[0].cancel()
    finally:
        release.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [[PUBLIC]] * (2 * LOOKUPS - 1) == found[1:]
    assert ["a.example", "hangs.example"] == sorted(asked)


async def test_nothing_is_remembered_of_a_lookup_that_is_over() -> None:
    answers = iter([[PUBLIC], ["10.0.0.7"]])
    watch = Guard(lookup=lambda host, port: next(answers))
    target = watch.check_url("https://a.example/canary")
    assert [PUBLIC] == await watch.resolve_check(target)
    with pytest.raises(AddressRefusedError):
        await watch.resolve_check(target)


async def test_resolving_refuses_what_leads_inside() -> None:
    watch = guard(a_example=["10.0.0.7"])
    with pytest.raises(AddressRefusedError):
        await watch.resolve_check(watch.check_url("https://a.example/canary"))


def test_the_socket_is_only_made_for_an_allowed_address() -> None:
    watch = guard()
    gate = watch.gate(watch.check_url("https://a.example/"))
    gate._socket(info(PUBLIC)).close()
    assert not gate.refused
    for address in ("127.0.0.1", METADATA, "::1", "fe80::1%lo", "::ffff:10.0.0.7"):
        gate.refused = False
        with pytest.raises(OSError, match="refused"):
            gate._socket(info(address))
        assert gate.refused


async def test_a_name_that_changes_between_check_and_connect_is_refused_at_the_connect() -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    watch = Guard(lookup=lambda host, port: next(answers))
    target = watch.check("https://a.example/canary")
    gate = watch.gate(target)
    with pytest.raises(OSError, match="refused"):
        await gate.addresses()
    assert gate.refused


def test_the_systems_resolver_gives_each_address_once() -> None:
    assert ["127.0.0.1"] == look_up("127.0.0.1", 80)


def test_a_name_that_cannot_be_looked_up_is_a_failure_of_the_network() -> None:
    with pytest.raises(OSError):
        look_up("a" * 70 + ".example", 80)
