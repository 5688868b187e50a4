"""deploy/nginx.conf at work, with other paths and ports than it has.

It tells in a header of its own which gateway answered, and on a port of its own by what it would
choose one.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.children import Process

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME = "warmline.example.com"
SERVED_BY = "x-test-gateway"
START_SECONDS = 60.0


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


def start_nginx(program: str, folder: Path, port: int, probe: int, own: list[int]) -> Process:
    config = folder / "nginx.conf"
    config.write_text(nginx_config(folder, port, probe, own))
    tried = subprocess.run(
        [program, "-t", "-c", str(config)], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stderr
    front = Process(
        [program, "-c", str(config), "-g", "daemon off;"],
        folder / "nginx.log",
        end=signal.SIGTERM,
    )
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", probe), 1).close()
            return front
        except OSError:
            assert front.popen.poll() is None, front.log.read_text()
            assert time.monotonic() < end
            time.sleep(0.02)  # another process: nobody tells when it listens


def nginx_config(folder: Path, port: int, probe: int, own: list[int]) -> str:
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


def write_certificate(folder: Path) -> Path:
    """One that signs itself, for nginx's name."""
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "fullchain.pem"
