import json
from pathlib import Path

from click.testing import Result

from app.ledger.database import prepare
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.databases import migrated
from tests.support.rows import make_row


def continued(tmp_path: Path, **changes) -> None:
    """A ledger of two turns, of which the second continues the first."""
    engine = prepare(migrated(tmp_path / "ledger.sqlite3"))
    before = make_row(turn_id="one", mode="ws_full", response_id="r1", baseline_digest="d1")
    given = {"previous_response_id": "r1", "prefix_digest": "d1", "mode": "ws_incremental"}
    write_rows(engine, [before, make_row(turn_id="two", **(given | changes))])
    engine.dispose()


def audited(*more: str) -> Result:
    return run("audit", "--database", "ledger.sqlite3", "--to", "2028-01-01", *more)


def test_an_audit_of_a_sound_ledger_says_so_and_exits_with_0(tmp_path: Path):
    continued(tmp_path)
    result = audited()
    assert 0 == result.exit_code, result.output
    assert result.stdout == (
        "2 turns read, 1 of them incremental: 1 verified, 0 wrong, 0 unknown\n"
    )


def test_an_audit_names_each_turn_that_breaks_the_chain_and_exits_with_1(tmp_path: Path):
    continued(tmp_path, prefix_digest="d9")
    result = audited()
    assert 1 == result.exit_code
    assert result.stdout.startswith("wrong: turn two of session session-a continues another")
    told = [json.loads(line) for line in audited("--format", "jsonl").stdout.splitlines()]
    assert [("two", "prefix_differs")] == [(t["turn_id"], t["verdict"]) for t in told[:-1]]
    assert (1, 0) == (told[-1]["wrong"], told[-1]["unknown"])


def test_an_audit_lists_what_cannot_be_checked_only_where_it_is_asked_to(tmp_path: Path):
    continued(tmp_path, previous_response_id="pruned")
    quiet, told = audited(), audited("--unknown")
    assert (0, 0) == (quiet.exit_code, told.exit_code)
    assert 1 == len(quiet.stdout.splitlines())
    assert told.stdout.startswith("unknown: turn two of session session-a continues a response")


def test_an_audit_takes_the_filters_of_an_export(tmp_path: Path):
    continued(tmp_path, prefix_digest="d9")
    assert 0 == audited("--where", "mode=ws_full").exit_code
    assert 1 == audited("--where", "session=session-a").exit_code
    assert 1 == audited("--from", "2027-01-15", "--tz", "UTC", "--by", "started").exit_code
