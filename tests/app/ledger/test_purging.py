import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, select

from app.errors import LedgerError
from app.ledger import imports, purging, store, taking
from app.ledger.database import open_engine, prepare
from app.ledger.imports import PURGED, Counts
from app.ledger.purging import Found, Target, look, purge, scrub
from app.ledger.retention import prune
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.rebuild import rebuild
from app.ledger.writer import write_rows
from tests.support.importing import ALL, stored, unjudged
from tests.support.rollups import Model, expected_whole, found_whole, instants, rows, turns_in
from tests.support.rows import START_MS, make_row

sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


def belongs(row, target: Target) -> bool:
    if target.tenant is not None:
        mine = row.tenant == target.tenant
    else:
        mine = target.session in (row.session, row.session_key, row.root_session)
    return mine and (target.before is None or row.started_at < target.before)


def tenants_named(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(select(tables.keys.c.tenant)).scalars()) - {"*"}


@settings(max_examples=8)
@given(
    st.lists(rows(), max_size=10, unique_by=lambda row: row.turn_id),
    st.sampled_from(["a", "b", "B", "é"]),
    st.none() | instants,
    st.booleans(),
)
def test_what_is_purged_has_never_been(holding, found, name, before, by_tenant):
    # A key is never a name, and here no sub-agent names a session that has no row of its own.
    found = [replace(row, session_key=f"key-{row.session_key}", root_session=None) for row in found]
    engine = holding(found)
    target = Target(tenant=name) if by_tenant else Target(session=name)
    target = replace(target, before=before)
    left = [row for row in found if not belongs(row, target)]
    seen = look(engine, target)
    assert len(found) - len(left) == seen.rows == purge(engine, target)
    assert unjudged(left) == unjudged(stored(engine))
    assert expected_whole(left, ALL) == found_whole(engine, ALL)
    sums = Model(engine).stored()
    rebuild(engine)
    assert sums == Model(engine).stored()
    assert {row.tenant for row in left} == tenants_named(engine)
    assert look(engine, target).nothing


def test_it_tells_what_it_would_delete(engine: Engine):
    write_rows(
        engine,
        [
            make_row(session="s", tenant="a", started_at=START_MS),
            make_row(session="s", tenant="b", started_at=START_MS + 5, session_key="other"),
            make_row(session="x"),
        ],
    )
    assert Found(2, 2, START_MS, START_MS + 5, 2, 0) == look(engine, Target(session="s"))
    assert 1 == look(engine, Target(session="key-s")).rows
    assert 1 == look(engine, Target(session="s", before=START_MS + 5)).rows
    assert look(engine, Target(tenant="nobody")).nothing


def test_sub_agents_go_with_their_session_by_its_name_and_by_its_key(engine: Engine):
    family = [
        make_row(session="s"),
        make_row(session="agent", root_session="s"),
        make_row(session="other agent", root_session="s", tenant="other"),
    ]
    write_rows(engine, family)
    assert 3 == look(engine, Target(session="s")).rows
    assert 2 == purge(engine, Target(session="key-s")), "another tenant's session is another one"
    assert 1 == look(engine, Target(session="s")).rows


def test_progress_is_told_to_the_end(engine: Engine):
    write_rows(engine, [make_row(session="s") for _ in range(3)])
    told: list[tuple[int, int]] = []
    purge(engine, Target(session="s"), lambda done, of: told.append((done, of)))
    assert ((0, 3), (3, 3)) == (told[0], told[-1])


def test_no_import_brings_it_back_by_accident(engine: Engine):
    row = make_row(session="s")
    write_rows(engine, [row])
    purge(engine, Target(session="s"))
    imports.begin(engine, "i", START_MS, ["s.csv"])
    assert [Counts(skipped={PURGED: 1})] == taking.take(engine, "i", [[row]], Counts())


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_no_import_that_runs_meanwhile_brings_it_back(engine: Engine):
    row = make_row(session="s")
    write_rows(engine, [row])
    imports.begin(engine, "i", START_MS, ["s.csv"])
    other = open_engine(engine.url)
    reads = []

    def purge_behind_the_first_read(_connection, _cursor, statement, *_rest):
        reads.append(statement)
        if len(reads) == 1:
            purge(other, Target(session="s"))

    event.listen(engine, "after_cursor_execute", purge_behind_the_first_read)
    (counts,) = taking.take(engine, "i", [[row]], Counts())
    event.remove(engine, "after_cursor_execute", purge_behind_the_first_read)
    other.dispose()
    assert (0, []) == (counts.new, stored(engine))


def test_each_part_of_it_is_committed_so_that_writers_and_it_do_not_wait_in_a_circle(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "AT_ONCE", 2)
    write_rows(engine, [make_row(session="s") for _ in range(5)])
    left = []
    purge(engine, Target(session="s"), lambda _done, _of: left.append(turns_in(engine)))
    assert [5, 3, 1, 0, 0] == left


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("target", [Target(tenant="a"), Target(session="a-1")])
def test_an_old_turn_that_ends_when_its_rows_are_gone_does_not_outlive_its_sums(
    engine: Engine, target: Target, monkeypatch: pytest.MonkeyPatch
):
    pruned(engine, old_and_new("a") + old_and_new("b"))
    late = make_row(tenant="a", session="a-1", started_at=START_MS - 9 * DAY)
    other, hold = open_engine(engine.url), purging.states.hold

    def a_turn_ends(connection, *, change):
        if change:
            monkeypatch.undo()
            write_rows(other, [late])
        return hold(connection, change=change)

    monkeypatch.setattr(purging.states, "hold", a_turn_ends)
    purge(engine, target)
    other.dispose()
    assert late.turn_id not in {row.turn_id for row in stored(engine)}
    assert look(engine, target).nothing


def old_and_new(tenant: str) -> list:
    return [
        make_row(tenant=tenant, session=f"{tenant}-{n % 2}", started_at=START_MS - n * 7 * HOUR,
                 model="m" if n % 3 else None, ttft_ms=None if n % 5 else 10.0 * n)
        for n in range(40)
    ]  # fmt: skip


def pruned(engine: Engine, rows: list) -> None:
    write_rows(engine, rows)
    prune(engine, START_MS, row_days=3, rollup_days=0)


def test_of_a_tenant_also_the_sums_go_whose_rows_were_deleted_as_too_old(holding):
    theirs = old_and_new("b")
    engine = holding([])
    pruned(engine, theirs)
    wanted, kept = found_whole(engine, ALL), Model(engine).stored()
    engine = holding([])
    pruned(engine, old_and_new("a") + theirs)
    seen = look(engine, Target(tenant="a"))
    assert (40, True) == (seen.rows + seen.summed, seen.summed > 20)
    purge(engine, Target(tenant="a"))
    assert wanted == found_whole(engine, ALL)
    assert kept == Model(engine).stored()
    assert {"b"} == tenants_named(engine)
    assert look(engine, Target(tenant="a")).nothing


def test_of_a_tenant_before_a_time_whole_days_of_sums_go(holding):
    cut = START_MS - START_MS % DAY - 5 * DAY
    mine = old_and_new("a")
    engine = holding([])
    pruned(engine, [row for row in mine if row.started_at >= cut] + old_and_new("b"))
    wanted = found_whole(engine, ALL)
    engine = holding([])
    pruned(engine, mine + old_and_new("b"))
    purge(engine, Target(tenant="a", before=cut + HOUR))
    assert wanted == found_whole(engine, ALL)


def test_of_a_session_whose_rows_are_gone_its_own_sums_go(engine: Engine):
    pruned(engine, old_and_new("a"))
    with engine.connect() as connection:
        known = set(connection.execute(select(tables.lives.c.session_key)).scalars())
    assert {"key-a-0", "key-a-1"} == known
    assert look(engine, Target(session="a-1")).summed > 10
    purge(engine, Target(session="a-1"))
    for table in (tables.sessions, tables.lives):
        with engine.connect() as connection:
            assert {"key-a-0"} == set(connection.execute(select(table.c.session_key)).scalars())
    assert {"key-a-0"} == {one.session_key for one in found_whole(engine, ALL)["sessions"]}
    assert 40 > found_whole(engine, ALL)["total"] >= 20, "what its old rows added to all stays"


def everywhere(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("ledger.sqlite3*")))


SECRET = "agent-0b5e-secret"


@sqlite
def test_nothing_of_it_can_be_read_in_the_file_afterwards(engine: Engine, tmp_path: Path):
    mine = [
        make_row(
            turn_id=f"turn_{SECRET}_{n}",
            session=SECRET,
            root_session=SECRET,
            prompt_cache_key=SECRET,
            tenant=f"tenant-{SECRET}",
            evidence=f'{{"path":"/{SECRET}"}}',
            started_at=START_MS + n * HOUR,
        )
        for n in range(60)
    ]
    others = [make_row(started_at=START_MS + n * HOUR) for n in range(60)]
    write_rows(engine, [row for pair in zip(mine, others, strict=True) for row in pair])
    imports.begin(engine, "i", START_MS, [f"rollout-{SECRET}.jsonl"])
    imports.finish(engine, "i", "done", now=START_MS, counts=Counts(), formats=[])
    prune(engine, START_MS + 2 * DAY, row_days=1, rollup_days=0)
    assert SECRET.encode() in everywhere(tmp_path)
    purge(engine, Target(session=SECRET))
    assert scrub(engine)
    assert 0 == everywhere(tmp_path).count(f"turn_{SECRET}".encode())
    assert 0 == everywhere(tmp_path).count(f'"/{SECRET}"'.encode())
    # Sums of pruned rows are told apart by tenant, of which this was not asked.
    purge(engine, Target(tenant=f"tenant-{SECRET}"))
    assert scrub(engine)
    assert SECRET.encode() not in everywhere(tmp_path)
    assert 44 == turns_in(engine)
    assert "(purged)" == imports.one(engine, "i").names


@sqlite
def test_a_file_that_is_in_use_is_told(engine: Engine, tmp_path: Path):
    write_rows(engine, [make_row()])
    other = open_engine(str(tmp_path / "ledger.sqlite3"))
    with other.connect() as reader, engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 1")
        connection.close()
        reader.exec_driver_sql("SELECT * FROM turns").fetchone()
        assert not scrub(engine)
    other.dispose()
    assert scrub(engine)


@sqlite
def test_a_file_that_there_is_no_room_to_write_anew_is_not_told_to_be_in_use(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL

    class Full:
        """A connection to a file on a full disk."""

        def cursor(self):
            return self

        def execute(self, statement):
            if statement == "VACUUM":
                raise error

        def close(self):
            pass

    monkeypatch.setattr(engine, "raw_connection", Full)
    with pytest.raises(LedgerError, match=r"could not be written anew \(database or disk is full"):
        scrub(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_servers_files_are_its_own_business(engine: Engine):
    assert scrub(engine)


@sqlite
def test_a_ledger_stays_what_it_is_when_its_file_is_written_anew(engine: Engine, tmp_path: Path):
    rows = [make_row(turn_id=f"t{n}") for n in range(5)]
    write_rows(engine, rows)
    purge(engine, Target(session="nobody"))
    scrub(engine)
    engine.dispose()
    again = prepare(str(tmp_path / "ledger.sqlite3"))
    write_rows(again, [make_row(turn_id="t9")])
    assert 6 == turns_in(again)
    assert rows == stored(again)[:5]
    again.dispose()
