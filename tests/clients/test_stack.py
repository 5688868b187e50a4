"""The judge of the clients' tests must be able to say no."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support import provider
from tests.support.stack import stack


def ask(url: str, items: list[Any], *, stream: bool) -> None:
    body = {"model": provider.MODEL, "input": items, "stream": stream, "store": False}
    request = urllib.request.Request(
        f"{url}/responses",
        json.dumps(body).encode(),
        {**provider.AUTH, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()


@pytest.mark.parametrize("stream", [True, False])
def test_a_transcript_that_differs_is_found(tmp_path: Path, stream: bool) -> None:
    with stack(tmp_path, replies=["first", "second"]) as it:
        items: list[Any] = [provider.user("hello")]
        ask(it.url, items, stream=stream)
        items += [*it.tap.exchanges[0].output, provider.user("and now?")]
        ask(it.url, items, stream=stream)

        assert [row.mode for row in it.rows()] == ["ws_full", "ws_incremental"]
        assert it.checked() == 2
        it.tap.exchanges[1].body["input"][-1] = provider.user("something else")
        with pytest.raises(AssertionError, match="they part at 2"):
            it.checked()
