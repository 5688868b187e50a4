"""Where webhooks may go: decided when an address is saved, tested, and once more when connecting.

A webhook's URL is typed by someone who may see the page, and fetched by a machine that sees more:
the local network, its own services, the cloud's metadata. So only ``https`` to public addresses
is allowed. The setting ``webhook_private_hosts`` names hosts for which plain ``http`` and private
addresses are meant; link-local and metadata addresses only where it names that very address.

The check at the connection is the one that counts: it sees the address that the socket is opened
to, whatever a name led to before. Messages name scheme, host and port at most: the path of a
webhook's URL often is its password.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from app.alerts.addresses import Reach, parse, reach
from app.errors import AppError

SETTING = "webhook_private_hosts"
LONGEST_URL = 2_000
LOOKUPS = 16
"""Names that are looked up at the same time."""

Lookup = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port. Blocks. Raises ``OSError`` when it has none."""


class AddressRefusedError(AppError):
    """Codes: ``bad_address`` (it cannot be one), ``address_refused`` (it may not be one)."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint, status=422)


@dataclass(frozen=True, slots=True)
class Target:
    """What may be known of a URL."""

    host: str
    """Lower case, without brackets and closing dot; international names in their ASCII form."""
    port: int
    scheme: str
    shown: str
    """``scheme://host[:port]``: all of the URL that is ever shown."""


def look_up(host: str, port: int) -> Sequence[str]:
    """By the system's resolver."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is too long
        raise OSError("not a name") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Guard:
    """``private_hosts`` is the setting ``webhook_private_hosts``."""

    def __init__(self, private_hosts: Iterable[str] = (), *, lookup: Lookup = look_up) -> None:
        self.private_hosts = tuple(private_hosts)
        self._listed = frozenset(_plain(host) for host in self.private_hosts)
        self._lookup = lookup
        # Threads of its own: a resolver that hangs must not take those that others wait for.
        self._threads = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="webhook-names")
        self._under_way: dict[Target, Future[list[str]]] = {}

    def check_url(self, url: str) -> Target:
        """What can be told without looking anything up. Raises ``AddressRefusedError``."""
        target = _read(url)
        listed = target.host in self._listed
        if target.scheme == "http" and not listed:
            raise AddressRefusedError(
                "address_refused",
                f"{target.shown} is not https.",
                f"Use https, or name {target.host} in the setting {SETTING}.",
            )
        if target.host == "localhost" or target.host.endswith(".localhost"):
            if not listed:
                raise self._refusal(target, Reach.PRIVATE)
        elif parse(target.host) is not None and not self.allows(target.host, target.host):
            raise self._refusal(target, _reach(target.host))
        return target

    def allows(self, address: str, host: str) -> bool:
        """Whether a webhook for ``host`` may be sent to ``address``."""
        found = _reach(address)
        if found is Reach.METADATA:
            return _plain(address) == _plain(host) and _plain(host) in self._listed
        return found is Reach.PUBLIC or _plain(host) in self._listed

    def check(self, url: str) -> Target:
        """As ``check_url``, and all addresses that the host has now. Blocks."""
        target = self.check_url(url)
        self._check_addresses(target)
        return target

    async def resolve_check(self, target: Target) -> list[str]:
        """All addresses that the host has now. Raises ``AddressRefusedError`` where one is not
        allowed, or where there is none.
        """
        future = self._under_way.get(target)
        if future is None:
            # One for all that ask at a time, or a name server that hangs would take all threads.
            future = self._threads.submit(self._check_addresses, target)
            self._under_way[target] = future
            future.add_done_callback(lambda _: self._under_way.pop(target, None))
        mine: Future[list[str]] = Future()  # others wait for the same, so only this can be given up
        future.add_done_callback(partial(_hand_on, mine))
        return await asyncio.wrap_future(mine)

    def _check_addresses(self, target: Target) -> list[str]:
        try:
            found = list(self._lookup(target.host, target.port))
        except OSError:
            found = []
        if not found:
            raise AddressRefusedError(
                "bad_address",
                f"The host {target.host} has no address.",
                "Check how it is written, and that this machine can look names up.",
            )
        for address in found:
            if not self.allows(address, target.host):
                raise self._refusal(target, _reach(address))
        return found

    def _refusal(self, target: Target, found: Reach) -> AddressRefusedError:
        if found is Reach.METADATA:
            return AddressRefusedError(
                "address_refused",
                f"{target.shown} leads to a link-local or metadata address.",
                f"Such an address is used only where the setting {SETTING} and the URL both name "
                "it itself.",
            )
        return AddressRefusedError(
            "address_refused",
            f"{target.shown} leads to an address that is not public.",
            f"If that is meant, name {target.host} in the setting {SETTING}.",
        )

    def gate(self, target: Target) -> Gate:
        """For one attempt."""
        return Gate(self, target)


def _hand_on(to: Future[list[str]], done: Future[list[str]]) -> None:
    if to.set_running_or_notify_cancel():
        error = done.exception()
        if error is None:
            to.set_result(done.result())
        else:
            to.set_exception(error)


class Gate:
    """The check at the connection, for one attempt: nothing is remembered from an earlier one."""

    def __init__(self, guard: Guard, target: Target) -> None:
        self._guard = guard
        self._target = target
        self.refused = False
        """Whether an address was refused: what the client raises then does not tell."""

    def connector(self, tls: ssl.SSLContext | None = None) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            resolver=_Names(self),
            socket_factory=self._socket,
            use_dns_cache=False,
            force_close=True,
            ssl=True if tls is None else tls,
        )

    async def addresses(self) -> list[str]:
        try:
            return await self._guard.resolve_check(self._target)
        except AddressRefusedError as error:
            self.refused = error.code == "address_refused"
            raise OSError("refused" if self.refused else "no address") from None

    def _socket(self, info: Any) -> socket.socket:
        """The last word: ``info`` holds the address that is going to be connected to."""
        family, kind, protocol, _, address = info
        if not self._guard.allows(str(address[0]), self._target.host):
            self.refused = True
            raise OSError("refused")
        return socket.socket(family=family, type=kind, proto=protocol)


class _Names(AbstractResolver):
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  (all are wanted)
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in await self._gate.addresses()
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _read(url: str) -> Target:
    """The parts that count, as the client reads them. Nothing of ``url`` is in the messages."""
    wanted = "It is like https://host/path."
    if not isinstance(url, str) or not url or len(url) > LONGEST_URL:
        raise AddressRefusedError(
            "bad_address", f"The URL must be a text of 1 to {LONGEST_URL} characters.", wanted
        )
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise AddressRefusedError(
            "bad_address", "The URL holds a blank, a control character or a backslash.", wanted
        )
    parts = _parts(url)
    if parts is None:
        raise AddressRefusedError("bad_address", "The URL cannot be read.", wanted)
    scheme, host, port = parts
    if scheme not in ("https", "http"):
        raise AddressRefusedError("bad_address", "The URL must begin with https://.", wanted)
    if not host or not port:
        raise AddressRefusedError("bad_address", "The URL needs a host, and no port 0.", wanted)
    if "@" in url.partition("://")[2].partition("/")[0].partition("?")[0]:
        raise AddressRefusedError(
            "bad_address", "The URL holds a user name or a password.", "Leave them out."
        )
    if "#" in url:
        raise AddressRefusedError(
            "bad_address", "The URL holds a fragment.", "Leave # and what follows out."
        )
    _check_host(host)
    named = f"[{host}]" if ":" in host else host
    usual = 443 if scheme == "https" else 80
    shown = f"{scheme}://{named}" + ("" if port == usual else f":{port}")
    return Target(host, port, scheme, shown)


def _parts(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port. None of what cannot be read: the parser's own error quotes it, and
    would stay behind whatever is raised while it is handled."""
    try:
        parts = URL(url)
        return parts.scheme, _plain(parts.raw_host or ""), parts.port
    except ValueError:
        return None


def _check_host(host: str) -> None:
    if ":" in host:
        if "%" in host or parse(host) is None:
            raise AddressRefusedError(
                "bad_address", "The URL's IPv6 address cannot be read.", "Write it without zone."
            )
        return
    labels = host.split(".")
    if len(host) > 253 or not all(re.fullmatch(r"[a-z0-9_-]{1,63}", label) for label in labels):
        raise AddressRefusedError("bad_address", "The URL's host is no host name.")
    # As browsers do: what ends in a number is an IPv4 address, however it is spelled.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) and parse(host) is None:
        raise AddressRefusedError(
            "bad_address",
            "The URL's host is an unusual spelling of an IP address.",
            "Write it as four decimal numbers, such as 192.0.2.1.",
        )


def _plain(host: str) -> str:
    """One spelling of a host, or of an address."""
    bare = host.strip().lower().strip("[]")
    bare = bare.removesuffix(".")
    found = parse(bare)
    if found is None:
        return bare
    zone = bare.partition("%")[2]
    return f"{found}%{zone}" if zone else str(found)


def _reach(address: str) -> Reach:
    """What cannot be read is not public."""
    found = parse(address)
    return Reach.PRIVATE if found is None else reach(found)
