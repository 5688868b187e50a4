"""Folders of rollouts, taken into a ledger: whatever happens meanwhile, it is the same ledger."""

import contextlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from app.importers import run as runs
from app.judging import judge_all
from tests.support.clock import ManualClock
from tests.support.importing import ALL, IDENTITY, NOW, imported, stored
from tests.support.rollouts import THREAD, Rollout, thread, usage
from tests.support.rollups import found_whole
from tests.support.rows import make_row


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def counted(*sizes):
    file = Rollout()
    for size in sizes:
        file.sent().counted(usage(size))
    return file.data


def of_turns(turns: int):
    """A session with records, of turns that have ended but for the last one."""
    file = Rollout(thread(7), cli_version="0.171.0")
    for number in range(turns):
        file.started(f"turn-{number}")
        for step in range(2):
            response = f"r{number}.{step}"
            file.sent().answered().recorded(usage(3_000 + number, 0), response)
        file.line("compacted", {"compaction_response_id": f"r{number}.1"})
        file.done(f"turn-{number}", time_to_first_token_ms=50 + number)
    return file.data


def forked():
    file = Rollout("child", forked_from_id=THREAD).meta(THREAD)
    for size in (1_000, 2_000, 9_000):
        file.sent().counted(usage(size), at=90)
    return file.data


def folder() -> dict[str, bytes]:
    """Files by where they lie: a session in two places, once cut and once compressed; one that is
    being written; a fork and its parent."""
    whole, parent = of_turns(3), counted(1_000, 2_000, 3_000)
    name = f"rollout-2026-11-01T10-00-00-{thread(7)}.jsonl"
    return {
        f"archived_sessions/{name}": whole[: len(whole) // 2],
        f"sessions/2026/11/01/{name}.zst": zstandard.compress(whole),
        f"sessions/2026/11/01/rollout-2026-11-01T10-00-00-{THREAD}.jsonl": parent,
        "sessions/2026/11/02/rollout-2026-11-02T10-00-00-child.jsonl": forked(),
        "history.jsonl": b'{"session_id":"x","ts":1,"text":"y"}\n',
    }


def ledger(engine):
    """Judged and priced, as it is after each import."""
    judge_all(engine, ManualClock(now=NOW))
    rows = [replace(row, import_id=None) for row in stored(engine)]
    return sorted(rows, key=lambda row: row.turn_id), found_whole(engine, ALL)


def generated(row) -> bool:
    return row.kind == "generation"


@settings(max_examples=3)
@given(data=st.data())
def test_in_any_order_interrupted_anywhere_and_twice_it_is_the_same_ledger(
    holding, tmp_path_factory, data
):
    base = tmp_path_factory.mktemp("codex")
    files = {place: (put(base / place, content), content) for place, content in folder().items()}
    expected_in = holding([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "CONCLUDING", None)  # nothing before its time
        counts = imported(expected_in, base).counts
        assert {None} == {(row.cache_verdict or row.price_note) for row in stored(expected_in)}
    expected = ledger(expected_in)
    assert all(row.price_note and row.cache_verdict for row in expected[0] if generated(row))
    assert (10, True) == (counts.new, counts.known > 0)
    assert {"compaction": 3, "generation": 7} == Counter(row.kind for row in expected[0])
    assert {50.0, 51.0, 52.0, None} == {row.ttft_ms for row in expected[0]}

    engine = holding([])
    steps = data.draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(files)), st.integers(0, 100), st.integers(0, 2)),
            max_size=4,
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH", 2)
        for place, length, after in steps:
            path, content = files[place]
            path.write_bytes(content[: len(content) * length // 100])
            left = after

            def stop(done: int, of: int) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt

            with contextlib.suppress(KeyboardInterrupt):
                imported(engine, path, progress=stop)
            path.write_bytes(content)
        order = data.draw(st.permutations(sorted(files)))
        for place in order:
            imported(engine, files[place][0])
    assert expected == ledger(engine)
    assert 0 == imported(engine, base).counts.new
    assert expected == ledger(engine)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_what_codex_has_logged_is_of_a_tenant_of_its_own_that_is_no_stranger(holding, tmp_path):
    engine = holding([make_row()])
    report = imported(engine, put(tmp_path / "x.jsonl", of_turns(1)))
    assert (2, 0) == (report.counts.new, report.strangers)
    found = [row for row in stored(engine) if row.source == "import:codex"]
    key = IDENTITY.session_key("openai", thread(7))
    assert {(IDENTITY.tenant, key, thread(7))} == {
        (row.tenant, row.session_key, row.session) for row in found
    }


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_fork_that_is_imported_alone_finds_its_parent_in_the_folder_of_codex(holding, tmp_path):
    for place, content in folder().items():
        put(tmp_path / place, content)
    report = imported(holding([]), *tmp_path.glob("sessions/*/*/02/*"))
    assert (1, 2) == (report.counts.new, report.counts.skipped.total())
