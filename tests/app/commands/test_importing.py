import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from app.commands import importing
from app.commands.ending import Ending
from app.importers.identity import Identity
from app.keys import load
from app.ledger import imports, merging, taking
from app.ledger.database import prepare
from app.ledger.models import turns
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.importing import as_csv, as_jsonl, stored
from tests.support.rollouts import THREAD, Rollout, usage
from tests.support.rollups import turns_in
from tests.support.rows import make_row

PAST = 1_600_000_000_000


def command(*arguments: str):
    return run("import", "--database", "new.sqlite3", *arguments)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.csv").write_bytes(as_csv([make_row(started_at=PAST)]))
    (tmp_path / "old" / "b.jsonl").write_bytes(
        as_jsonl([make_row(started_at=PAST)]) + b'{"turn_id":"x"}\n'
    )
    return tmp_path / "old"


def held() -> int:
    engine = prepare("new.sqlite3")
    found = turns_in(engine)
    engine.dispose()
    return found


def only_import() -> str:
    engine = prepare("new.sqlite3")
    (found,) = imports.listed(engine)
    engine.dispose()
    return found.id


def test_import_makes_the_ledger_and_says_what_it_did(exported: Path):
    result = command(str(exported))
    number = only_import()
    assert (0, 2) == (result.exit_code, held())
    assert [
        "b.jsonl (jsonl): 1 new, 0 known, 1 skipped",
        "a.csv (csv): 1 new, 0 known",
        "  1 skipped: started_at is missing (b.jsonl:2).",
        f"2 new, 0 known, 1 skipped. Undo with: warmline import --undo {number}",
    ] == result.output.splitlines()[:-1]


def test_rows_that_the_service_would_delete_are_told_of_unless_it_keeps_all(
    exported: Path, monkeypatch
):
    said = command(str(exported)).output.splitlines()[-1]
    assert said.startswith("Rows from before 20")
    assert said.endswith("To keep them set retain_rows_days = 0.")
    command("--undo", only_import())
    monkeypatch.setenv("WARMLINE_RETAIN_ROWS_DAYS", "0")
    assert "retain_rows_days" not in command(str(exported)).output


def test_import_twice_reads_nothing_again_unless_it_is_asked_for(exported: Path):
    command(str(exported))
    result = command(str(exported))
    assert "Imported before, and unchanged: 2 files.\n" == result.output
    assert (0, 2) == (result.exit_code, held())
    assert 0 == command("--list").exit_code
    only_import()
    for flag in ("--unchanged", "--purged"):
        result = command(flag, str(exported))
        assert "0 new, 2 known, 1 skipped." == result.output.splitlines()[-1]
        assert (0, 2) == (result.exit_code, held())


def test_what_was_undone_can_be_imported_again(exported: Path):
    command(str(exported))
    command("--undo", only_import())
    assert "2 new, 0 known, 1 skipped." in command(str(exported)).output


def test_a_folder_is_watched_until_it_is_told_to_end(exported: Path, monkeypatch):
    class Ends(Ending):
        rested = 0

        def rest(self, seconds: float) -> bool:
            self.rested += 1
            if self.rested == 1:
                new = [make_row(turn_id=name, started_at=PAST) for name in ("one", "two")]
                (exported / "c.csv").write_bytes(as_csv(new))
            if self.rested == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().rest(0)

    monkeypatch.setattr(importing, "Ending", Ends)
    result = command("--watch", str(exported))
    number = only_import()
    assert (0, 4) == (result.exit_code, held())
    lines = result.output.splitlines()
    assert ["Watching. End it with Ctrl-C.", "2 new in a.csv, b.jsonl", "2 new in c.csv"] == [
        line.rpartition("Z  ")[2] for line in lines[:3]
    ]
    assert f"4 new, 0 known, 1 skipped. Undo with: warmline import --undo {number}" == lines[-1]
    assert " old (watched)" in command("--list").output
    assert set(verdicts().values()) != {None}


def test_import_lists_and_undoes(exported: Path):
    assert "There is no ledger at" in command("--list").output
    command(str(exported))
    number = only_import()
    assert command("--list").output.startswith(f"{number}  20")
    assert "Taken away again: 2 rows.\n" == command("--undo", number).output
    assert 0 == held()
    assert " undone " in command("--list").output
    result = command("--undo", "nothing")
    assert (1, True) == (result.exit_code, "There is no import 'nothing'." in result.output)


def test_an_undo_tells_of_records_that_were_one_row_with_a_gateways(exported: Path):
    command(str(exported))
    engine = prepare("new.sqlite3")
    seen = make_row(turn_id="g", session="s", turn_group=None)
    write_rows(engine, [seen])
    imports.begin(engine, "i", PAST, [])
    record = replace(seen, turn_id="l", source="import:codex", mode=None, tenant="logs")
    taking.take(engine, "i", [[record]], imports.Counts(), logged=True)
    merging.merge_waiting(engine)
    engine.dispose()
    assert [
        "Taken away again: 0 rows.",
        "One row with a gateway's: 1 record; those rows are as they were before.",
    ] == command("--undo", "i").output.splitlines()


def test_what_was_imported_is_judged_and_what_an_undo_leaves_is_judged_anew(tmp_path: Path):
    tokens = {"input_tokens": 20_000, "cached_tokens": 19_968}
    for name, start in (("one", PAST), ("two", PAST + 60_000)):
        rows = [make_row(turn_id=name, started_at=start, **tokens)]
        (tmp_path / f"{name}.csv").write_bytes(as_csv(rows))
    command(str(tmp_path / "one.csv"))
    number = only_import()
    command(str(tmp_path / "two.csv"))
    assert {"one": "shared_prefix", "two": "hit"} == verdicts()
    command("--undo", number)
    assert {"two": "shared_prefix"} == verdicts()


def verdicts() -> dict[str, str]:
    engine = prepare("new.sqlite3")
    with engine.connect() as connection:
        found = connection.execute(select(turns.c.turn_id, turns.c.cache_verdict)).all()
    engine.dispose()
    return {row.turn_id: row.cache_verdict for row in found}


def test_a_file_that_is_no_use_is_told_and_fails(tmp_path: Path):
    (tmp_path / "x").write_text('{"type":"thread.started","thread_id":"t"}\n')
    result = command("x")
    assert 1 == result.exit_code
    assert "x: It is what codex exec --json writes" in result.output
    assert "There was nothing to import." in result.output
    assert "There is no file nowhere." in command("nowhere").output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("x", "--list"),
        ("--list", "--undo", "1"),
        ("--purged", "--list"),
        ("--watch",),
        ("--unchanged", "--undo", "1"),
    ],
)
def test_what_is_asked_for_must_be_one_thing(arguments):
    result = command(*arguments)
    assert (2, True) == (result.exit_code, "Give files or folders" in result.output)


def test_sessions_of_other_tools_are_named_with_the_ledgers_key(tmp_path: Path):
    (tmp_path / "log.jsonl").write_bytes(Rollout().counted(usage(5_000)).data)
    assert 0 == command("log.jsonl").exit_code
    identity = Identity(load(tmp_path / "new.sqlite3.key"))
    engine = prepare("new.sqlite3")
    (row,) = stored(engine)
    engine.dispose()
    assert (identity.tenant, identity.session_key("openai", THREAD), THREAD) == (
        row.tenant, row.session_key, row.session,
    )  # fmt: skip


def test_names_are_hashed_where_they_are_not_to_be_shown(tmp_path: Path):
    (tmp_path / "log.jsonl").write_bytes(Rollout().counted(usage(5_000)).data)
    command("--pseudonymize", "log.jsonl")
    engine = prepare("new.sqlite3")
    (row,) = stored(engine)
    engine.dispose()
    assert load(tmp_path / "new.sqlite3.key").pseudonym(THREAD) == row.session


def test_another_key_than_the_ledgers_is_refused(exported: Path, tmp_path: Path):
    command(str(exported))
    (tmp_path / "other.key").write_text("00" * 32)
    result = command("--key-file", "other.key", str(exported))
    assert (1, True) == (
        result.exit_code,
        "not the one this ledger was written with" in result.output,
    )
