"""The systemd unit and the settings file that it names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import load
from tests.support.deployed import read_unit, unit
from tests.support.nginx import DEPLOY, NAME, replaced

EXPOSURE = 20
"""What systemd thinks of a service's hardening, in tenths; 100 is none."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit, with a program that is there; systemd looks for it."""
    program = Path(sys.executable).with_name("warmline")
    text = (DEPLOY / "warmline@.service").read_text()
    copy = tmp_path / "warmline@.service"
    copy.write_text(replaced(text, {"/opt/warmline/bin/warmline": str(program)}))
    return copy


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_systemd_takes_the_unit(installed: Path) -> None:
    done = analyze("verify", str(installed))
    assert (0, "") == (done.returncode, done.stderr)


def test_the_service_may_do_little_else_than_serve(installed: Path) -> None:
    done = analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", str(installed))
    assert 0 == done.returncode, done.stdout[-500:]


def test_each_instance_has_a_journal_of_its_own_that_outlives_it() -> None:
    service = read_unit()["Service"]
    journals = [unit(port, Path("/var/lib"))[1] for port in (8787, 8788)]
    assert [{"WARMLINE_JOURNAL_DIR": f"/var/lib/warmline/{port}"} for port in (8787, 8788)] == (
        journals
    )
    assert "warmline warmline/%i" == service["StateDirectory"]


def test_the_settings_are_those_of_several_gateways_behind_nginx(tmp_path: Path) -> None:
    for name in ("token", "gateway-token"):
        (tmp_path / name).write_text(f"{name}-of-a-test\n")
    (tmp_path / "database").write_text("postgresql://warmline:secret@db.example.com/warmline\n")
    config = tmp_path / "warmline.toml"
    text = (DEPLOY / "warmline.toml").read_text()
    config.write_text(replaced(text, {"/etc/warmline/": f"{tmp_path}/"}))
    found = load(config=config, environ={}, flags={"port": "8788"})
    assert ("token-of-a-test", "gateway-token-of-a-test") == (found.token, found.gateway_token)
    assert str(found.database).startswith("postgresql://warmline:secret@")
    assert (8788, NAME) == (found.port, *found.allowed_hosts)
    assert f"https://{NAME}" == found.base_url
