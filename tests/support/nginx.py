"""deploy/nginx.conf at work, with other paths and ports than it has.

It tells in a header of its own which gateway answered, and on a port of its own by what it would
choose one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509

from tests.support.certificates import self_signed
from tests.support.children import Process, free_ports

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME = "warmline.example.com"
SERVED_BY = "x-test-gateway"
START_SECONDS = 120.0


def need_nginx() -> str:
    """nginx's path; skips the test where there is none, except in CI."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("nginx is missing: apt-get install nginx")
        pytest.skip("nginx is missing: apt-get install nginx")
    return found


def replaced(text: str, changes: dict[str, str]) -> str:
    """Each must be there: a test of a file that it does not change as it means tests nothing."""
    for old, new in changes.items():
        assert old in text, f"{old!r} is not there"
        text = text.replace(old, new)
    return text


@dataclass
class Front:
    """nginx as clients and browsers see it: by its name, over TLS."""

    folder: Path
    port: int
    probe: int
    """Port on which it answers with what it chooses a gateway by."""
    process: Process
    trust: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}"

    @asynccontextmanager
    async def client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """All its connections end with the block, at once."""
        sockets: list[socket.socket] = []

        def made(info: aiohttp.AddrInfoType) -> socket.socket:
            sockets.append(socket.socket(*info[:3]))
            return sockets[-1]

        connector = aiohttp.TCPConnector(
            resolver=_Here(), ssl=self.trust, limit=0, socket_factory=made
        )
        try:
            async with aiohttp.ClientSession(
                connector=connector, connector_owner=False, skip_auto_headers=("accept-encoding",)
            ) as http:
                yield http
        finally:
            await connector.close(abort_ssl=True)
            # The connector forgets a connection that nginx wants closed, while TLS still takes leave.
            for one in sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            async with asyncio.timeout(20):
                while any(one.fileno() != -1 for one in sockets):
                    await asyncio.sleep(0)


class _Here(AbstractResolver):
    """Every name is this machine's."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        pass


@contextmanager
def front(folder: Path, gateways: Sequence[int]) -> Iterator[Front]:
    """nginx before the gateways at these two ports; files go to ``folder``."""
    program = need_nginx()
    certificate = _write_certificate(folder / "tls")
    port, probe = free_ports(2)
    config = folder / "nginx.conf"
    config.write_text(nginx_config(folder, port, probe, gateways))
    command = [program, "-c", str(config)]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    process = Process([*command, "-g", "daemon off;"], folder / "nginx.log", end=signal.SIGTERM)
    try:
        process.wait_for(lambda: _listens(probe), START_SECONDS)
        trust = ssl.create_default_context(cafile=str(certificate))
        yield Front(folder, port, probe, process, trust)
    finally:
        process.end()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def nginx_config(folder: Path, port: int, probe: int, own: Sequence[int]) -> str:
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return replaced(
        (DEPLOY / "nginx.conf").read_text(),
        {
            "/run/nginx.pid": f"{folder}/nginx.pid",
            "/var/log/nginx/": f"{folder}/",
            "/etc/warmline/": f"{folder}/",
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "server 127.0.0.1:8787 ": f"server 127.0.0.1:{own[0]} ",
            "server 127.0.0.1:8788 ": f"server 127.0.0.1:{own[1]} ",
            "http {\n": (
                f"http {{\n{temporary}add_header {SERVED_BY} $upstream_addr always;\n"
                f"server {{ listen 127.0.0.1:{probe}; "
                'location / { return 200 "$warmline_session"; } }\n'
            ),
        },
    )


def _write_certificate(folder: Path) -> Path:
    """One that signs itself, for nginx's name."""
    folder.mkdir()
    made = self_signed(NAME, of=x509.DNSName(NAME))
    (folder / "fullchain.pem").write_bytes(made.certificate)
    (folder / "privkey.pem").write_bytes(made.key)
    return folder / "fullchain.pem"
