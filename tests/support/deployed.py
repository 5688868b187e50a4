"""Two gateways behind nginx, as deploy/ has them: real processes, one ledger, and a provider.

What is run are the files of deploy/ with other paths and ports: the command and the environment of
the systemd unit, the settings file, nginx.conf.
"""

from __future__ import annotations

import configparser
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.children import Process, free_ports
from tests.support.nginx import DEPLOY, START_SECONDS, Front, front, need_nginx, replaced

TOKEN, GATEWAY_TOKEN = "token-of-the-pages", "token-of-the-gateways"


def unit(port: int, state: Path) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the systemd unit, for the instance of this port."""
    service = read_unit()["Service"]

    def filled(text: str) -> str:
        return text.replace("%i", str(port)).replace("%S", str(state))

    name, _, value = filled(service["Environment"]).partition("=")
    return shlex.split(filled(service["ExecStart"])), {name: value}


def read_unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "warmline@.service")
    return parser


@dataclass
class Gateway:
    """``warmline serve`` on one port. Its connections to PostgreSQL have its name."""

    name: str
    port: int
    folder: Path
    database: str
    upstream: str
    process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, **settings: str) -> None:
        """``settings``: further variables."""
        command, env = unit(self.port, self.folder / "state")
        program, *arguments = command
        own = {
            "WARMLINE_DATABASE": f"{self.database}&application_name={self.name}",
            "WARMLINE_UPSTREAM": self.upstream,
            "WARMLINE_WEBHOOK_PRIVATE_HOSTS": "127.0.0.1",
        }
        arguments = [part.replace("/etc/warmline", str(self.folder)) for part in arguments]
        self.process = Process(
            [str(Path(sys.executable).with_name(Path(program).name)), *arguments],
            self.folder / f"{self.name}.log",
            env={**env, **own, **settings},
        )

    def wait(self) -> None:
        """Until it is ready."""
        assert self.process is not None
        self.process.wait_for(self.is_ready, START_SECONDS)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.URLError:
            return False

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.end(how)


@dataclass
class Deployment:
    folder: Path
    database: str
    provider: Process
    gateways: list[Gateway]
    nginx: Front

    @property
    def headers(self) -> dict[str, str]:
        """What every client of the gateways sends."""
        return {"authorization": "Bearer sk-test", "x-warmline-token": GATEWAY_TOKEN}

    def open_the_gate(self) -> None:
        """Let the provider go on with what it holds."""
        assert self.provider.popen.stdin is not None
        self.provider.popen.stdin.write(b"open\n")
        self.provider.popen.stdin.flush()


@contextmanager
def deployed(folder: Path, database: str) -> Iterator[Deployment]:
    """``database``: the URL of an empty PostgreSQL ledger."""
    need_nginx()
    _write_settings(folder, database)
    own = free_ports(2)
    with ExitStack() as stack:
        provider = Process(
            [sys.executable, "-m", "tests.support.provider_alone"],
            folder / "provider.log",
            cwd=DEPLOY.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        stack.callback(provider.end)
        assert provider.popen.stdout is not None
        upstream = provider.popen.stdout.readline().decode().strip()
        assert upstream, provider.log.read_text()
        gateways = [
            Gateway(name, at, folder, database, upstream)
            for name, at in zip("ab", own, strict=True)
        ]
        for one in gateways:
            one.start()
            stack.callback(one.end)
        nginx = stack.enter_context(front(folder, own))
        for one in gateways:
            one.wait()
        yield Deployment(folder, database, provider, gateways, nginx)


def _write_settings(folder: Path, database: str) -> None:
    settings = (DEPLOY / "warmline.toml").read_text()
    (folder / "warmline.toml").write_text(replaced(settings, {"/etc/warmline/": f"{folder}/"}))
    secrets = {
        "database": database,
        "key": "ab" * 32,
        "token": TOKEN,
        "gateway-token": GATEWAY_TOKEN,
    }
    for name, text in secrets.items():
        (folder / name).write_text(text + "\n")
        (folder / name).chmod(0o600)
