"""What is installed is what is declared, and a wheel works without the checkout."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def name_of(requirement: str) -> str:
    match = NAME.match(requirement)
    assert match, requirement
    return match.group().lower().replace("_", "-")


def declared() -> set[str]:
    project = PROJECT["project"]
    groups = [*PROJECT["dependency-groups"].values(), *project["optional-dependencies"].values()]
    lists = [project["dependencies"], *groups]
    return {name_of(entry) for entries in lists for entry in entries if isinstance(entry, str)}


def test_each_dependency_has_its_reason_and_no_reason_outlives_its_dependency() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    explained = re.findall(r"^\| `([^`]+)` \| \S", text, re.MULTILINE)
    assert declared() == set(explained)
    assert len(explained) == len(set(explained))


def test_the_lock_pins_each_dependency_with_hashes() -> None:
    pinned = set(
        re.findall(
            r"^([a-z0-9-]+)==\S+(?: ; .+)? \\\n    --hash=sha256:[0-9a-f]{64}", LOCK, re.MULTILINE
        )
    )
    optional = {
        name_of(e) for es in PROJECT["project"]["optional-dependencies"].values() for e in es
    }
    assert declared() - optional - pinned == set()
    assert len(pinned) == len(re.findall(r"^[a-z0-9-]+==", LOCK, re.MULTILINE))


def test_the_lock_names_no_index() -> None:
    assert re.findall(r"^--.*|\w+://\S*", LOCK, re.MULTILINE) == []


@pytest.mark.skipif("WHEEL_CHECK" not in os.environ, reason="takes a minute: make wheel-check")
@pytest.mark.timeout(600)
def test_a_wheel_finds_its_pages_and_migrations_without_the_checkout(tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        result = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout.strip()

    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("warmline-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    bin_ = tmp_path / "venv" / "bin"
    pip = [bin_ / "python", "-m", "pip", "install", "--quiet"]
    run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*pip, "--no-deps", wheel)

    expected = f"warmline, version {PROJECT['project']['version']}"
    assert run(bin_ / "warmline", "--version") == expected
    database = tmp_path / "ledger.sqlite3"
    assert "is at schema" in run(
        bin_ / "warmline", "db", "upgrade", "--database", f"sqlite:///{database}"
    )
    assert database.is_file()
    site = Path(run(bin_ / "python", "-c", "import app; print(app.__path__[0])"))
    assert site.is_relative_to(tmp_path)
    shown = run(
        bin_ / "python",
        "-c",
        "from app.paths import *; print(STATIC, ALEMBIC, TEMPLATES, sep='\\n')",
    )
    assert shown.splitlines() == [
        str(site / part) for part in ("static", "alembic", "web/templates")
    ]
    for kept in ("static", "alembic/versions", "web/templates"):
        origin = ROOT / "app" / kept if kept.startswith("web") else ROOT / kept
        names = {p.relative_to(origin) for p in origin.rglob("*.*") if "__pycache__" not in p.parts}
        assert names
        assert {name for name in names if not (site / kept / name).is_file()} == set()
