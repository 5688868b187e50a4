"""Real clients with the settings that the page Connect and docs/clients.md show, word for word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from app.web import snippets
from tests.support.codex import MODEL, QUIET, ROOT, binary, missing
from tests.support.stack import Stack, stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]
TOKEN = "the-token-of-the-gateway"
PYTHON = ROOT / ".cache" / "clients" / "bin" / "python"


def shown(name: str, it: Stack) -> str:
    found = {client.name: client for client in snippets.clients(token=True)}
    return found[name].snippets[0].text.replace(snippets.URL, it.url)


def run(folder: Path, *command: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        snippets.TOKEN: TOKEN,
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_each_client_reaches_a_gateway_that_wants_a_token_with_what_it_is_told(
    tmp_path: Path,
) -> None:
    """What is shown where there is no token is the same without the header."""
    if not PYTHON.exists():
        missing("The SDKs", "make clients")
    (tmp_path / "token").write_text(TOKEN)
    with stack(tmp_path, flags={"gateway_token_file": str(tmp_path / "token")}) as it:
        for name in ("openai-python", "agents"):
            program = tmp_path / f"with_{name}.py"
            program.write_text(shown(name, it))
            run(tmp_path, str(PYTHON), str(program))
        (tmp_path / ".codex").mkdir()
        (tmp_path / ".codex" / "config.toml").write_text(shown("codex", it))
        quiet = [part for setting in QUIET for part in ("-c", setting)]
        bypass = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        run(tmp_path, str(binary()), "exec", *bypass, "-m", MODEL, *quiet, "Say hi.")
        rows = it.rows()
    assert [row.client for row in rows if row.kind == "generation"] == [
        "OpenAI/Python",
        "Agents/Python",
        "codex_exec",
    ]
    assert {row.status for row in rows} == {"completed"}
