"""The steps of docs/embedding.md run as they stand, and print what stands below them."""

import ast
import inspect
import re
from typing import Any

import pytest

from engine.embed import EPOCH_TURNS
from tests.support.markdown import DOCS

TEXT = (DOCS / "embedding.md").read_text()
STEPS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, re.DOTALL)


async def run(step: str, names: dict[str, Any]) -> None:
    """As ``python -m asyncio`` does: ``await`` may stand at the top."""
    code = compile(step, "embedding.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result


async def test_every_step_runs_and_prints_what_is_shown(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(STEPS) >= 8
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "embedding"}
    for step, shown in STEPS:
        await run(step, names)
        assert shown == capsys.readouterr().out, step
    assert {"embedded"} == {facts.source for facts in names["facts"]}


def test_the_numbers_in_the_text_are_those_of_the_code() -> None:
    assert f"end after {EPOCH_TURNS} turns" in TEXT
