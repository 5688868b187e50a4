import gzip
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.errors import AppError
from app.importers import run as runs
from app.importers.run import FUTURE
from app.ledger import imports, taking
from app.ledger.database import prepare
from app.ledger.imports import Undone
from app.ledger.rollups.rebuild import rebuild
from app.ledger.writer import write_rows
from tests.support import importing, rollups
from tests.support.clock import ManualClock
from tests.support.importing import ALL, NOW, as_csv, as_jsonl, imported, stored, unjudged
from tests.support.rollups import Model, edges, found_series, found_whole, turns_in
from tests.support.rows import START_MS, make_row

on_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
FORMS = {"csv": as_csv, "jsonl": as_jsonl}


def original(row):
    return replace(row, import_id=None)


@settings(max_examples=8)
@given(st.lists(importing.rows, min_size=1, max_size=4), st.sampled_from(sorted(FORMS)), edges())
def test_what_was_exported_makes_an_equal_ledger(holding, tmp_path_factory, found, form, cuts):
    engine = holding(found)
    figures = found_whole(engine, ALL), found_series(engine, ALL, cuts)
    path = tmp_path_factory.mktemp("x") / "file"
    path.write_bytes(FORMS[form](found))
    assert (0, len(found)) == (imported(engine, path).counts.new, turns_in(engine))

    engine = holding([])
    report = imported(engine, path)
    assert (len(found), []) == (report.counts.new, [f.failure for f in report.files if f.failure])
    assert sorted(found, key=lambda row: row.turn_id) == [original(row) for row in stored(engine)]
    assert figures == (found_whole(engine, ALL), found_series(engine, ALL, cuts))
    assert (0, len(found)) == ((again := imported(engine, path).counts).new, again.known)
    assert figures == (found_whole(engine, ALL), found_series(engine, ALL, cuts))


@settings(max_examples=8)
@given(
    st.lists(rollups.rows(), max_size=8, unique_by=lambda row: row.turn_id),
    st.lists(rollups.rows(), min_size=1, max_size=8, unique_by=lambda row: row.turn_id),
)
def test_what_is_undone_has_never_been(holding, tmp_path_factory, mine, theirs):
    engine = holding(mine)
    before, figures = unjudged(stored(engine)), found_whole(engine, ALL)
    path = tmp_path_factory.mktemp("x") / "file"
    path.write_bytes(as_jsonl([_that_adds_up(row) for row in theirs]))
    report = imported(engine, path)
    assert Undone(report.counts.new, 0) == imports.undo(engine, report.import_id)
    assert (before, figures) == (unjudged(stored(engine)), found_whole(engine, ALL))
    sums = Model(engine).stored()
    rebuild(engine)
    assert sums == Model(engine).stored()


def _that_adds_up(row):
    given, cached, out = row.input_tokens, row.cached_tokens, row.output_tokens
    return replace(
        row,
        non_cached_tokens=None if given is None or cached is None else given - cached,
        total_tokens=None if given is None or out is None else given + out,
    )


@settings(max_examples=6)
@given(st.integers(0, 6), st.sampled_from(sorted(FORMS)))
def test_interrupted_anywhere_and_run_again_it_is_the_same_ledger(
    holding, tmp_path_factory, after, form
):
    rows = [make_row(turn_id=f"t{n:03}", started_at=START_MS + n) for n in range(12)]
    path = tmp_path_factory.mktemp("x") / "file"
    path.write_bytes(FORMS[form](rows))
    engine = holding([])

    def stop(done: int, of: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    left = after
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH", 3)
        try:
            imported(engine, path, progress=stop)
        except KeyboardInterrupt:
            (found,) = imports.listed(engine)
            assert ("interrupted", turns_in(engine)) == (found.state, found.rows_new)
        report = imported(engine, path)
    assert (12, 12) == (report.counts.new + report.counts.known, turns_in(engine))
    assert rows == [original(row) for row in stored(engine)]
    figures = found_whole(engine, ALL)
    assert figures == found_whole(holding(rows), ALL)


def test_two_imports_at_once_take_each_row_once(engine: Engine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runs, "BATCH", 5)
    rows = [make_row(turn_id=f"t{n:02}", started_at=START_MS + n) for n in range(40)]
    (tmp_path / "a").write_bytes(as_csv(rows))
    (tmp_path / "b").write_bytes(as_jsonl(rows[::-1]))
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda name: imported(engine, tmp_path / name), "ab"))
    assert 40 == sum(report.counts.new for report in reports) == turns_in(engine)
    assert 40 == sum(report.counts.known for report in reports)
    assert found_whole(engine, ALL) == rollups.expected_whole(rows, ALL)


@on_sqlite
def test_a_folder_is_one_import_and_names_no_directory(engine: Engine, tmp_path: Path):
    rows = [make_row(turn_id=f"t{n}") for n in range(4)]
    folder = tmp_path / "secret place"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.csv").write_bytes(as_csv(rows[:2]))
    (folder / "deep" / "b").write_bytes(gzip.compress(as_jsonl(rows[1:])))
    (folder / "readme.txt").write_text("hello")
    report = imported(engine, folder, make_id=lambda: "abcd")
    assert ("abcd", 4, 1, 1) == (
        report.import_id,
        report.counts.new,
        report.counts.known,
        report.ignored,
    )
    (found,) = imports.listed(engine)
    assert ("a.csv, b", "csv,jsonl", "done", 4) == (
        found.names,
        found.formats,
        found.state,
        found.rows_new,
    )
    assert {"abcd"} == {row.import_id for row in stored(engine)}


@on_sqlite
@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_file_that_has_grown_or_was_cut_is_read_as_if_for_the_first_time(
    engine: Engine, tmp_path: Path, form
):
    rows = [make_row(turn_id=f"t{n}") for n in range(6)]
    whole, path = FORMS[form](rows), tmp_path / "x"
    for length in (len(whole) - 40, len(whole), len(FORMS[form](rows[:2])), len(whole)):
        path.write_bytes(whole[:length])
        imported(engine, path)
    assert rows == [original(row) for row in stored(engine)]


@on_sqlite
def test_a_file_that_lies_in_two_places_counts_once_and_the_longer_one_whole(
    engine: Engine, tmp_path: Path
):
    rows = [make_row(turn_id=f"t{n}") for n in range(4)]
    for name, found in (("archive", rows[:3]), ("live", rows)):
        (tmp_path / "f" / name).mkdir(parents=True)
        (tmp_path / "f" / name / "x.jsonl").write_bytes(as_jsonl(found))
    counts = imported(engine, tmp_path / "f").counts
    assert (4, 3, rows) == (counts.new, counts.known, [original(row) for row in stored(engine)])


@on_sqlite
def test_each_reason_is_told_with_its_first_lines(engine: Engine, tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(b"".join([as_jsonl([make_row()]), b"x\n" * 5, b'{"turn_id":"t"}\n']))
    (file,) = imported(engine, path).files
    assert {"is not one JSON object": [2, 3, 4], "started_at is missing": [7]} == file.examples
    assert {"is not one JSON object": 5, "started_at is missing": 1} == dict(file.counts.skipped)
    assert 6 == imports.listed(engine)[0].skipped


@on_sqlite
def test_a_named_file_that_cannot_be_read_is_told_and_the_others_are_taken(
    engine: Engine, tmp_path: Path
):
    (tmp_path / "x").write_text("hello")
    (tmp_path / "y").write_bytes(as_jsonl([make_row()]))
    report = imported(engine, tmp_path / "x", tmp_path / "y")
    assert (True, 1) == (report.failed, report.counts.new)
    assert ["It is not a format that can be imported: docs/formats.md lists them.", None] == [
        file.failure for file in report.files
    ]


@on_sqlite
def test_a_file_that_goes_away_meanwhile_is_told_and_the_others_are_taken(
    engine: Engine, tmp_path: Path
):
    for name in "xy":
        (tmp_path / name).write_bytes(as_jsonl([make_row()]))

    def meanwhile() -> str:
        (tmp_path / "y").unlink()
        return "abcd"

    report = imported(engine, tmp_path / "x", tmp_path / "y", make_id=meanwhile)
    assert 1 == report.counts.new
    assert [None, "It cannot be read (No such file or directory)."] == [
        file.failure for file in report.files
    ]


@on_sqlite
def test_nothing_to_import_leaves_no_record(engine: Engine, tmp_path: Path):
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "x").write_text("hello")
    assert (None, 1) == ((report := imported(engine, tmp_path / "f")).import_id, report.ignored)
    assert [] == imports.listed(engine)
    with pytest.raises(AppError, match="There is no file"):
        imported(engine, tmp_path / "nowhere")


@on_sqlite
def test_of_a_damaged_file_what_comes_before_is_taken(engine: Engine, tmp_path: Path):
    rows = [make_row() for _ in range(30)]
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(as_jsonl(rows[:20])) + gzip.compress(as_jsonl(rows[20:]))[:-300])
    report = imported(engine, path)
    assert "Its compressed data end early." == report.files[0].failure
    assert 20 <= report.counts.new < 30
    path.write_bytes(as_jsonl(rows))
    imported(engine, path)
    assert 30 == turns_in(engine)


@on_sqlite
def test_a_row_of_a_time_that_has_not_come_is_skipped(engine: Engine, tmp_path: Path):
    good, bad = make_row(), make_row(started_at=START_MS + 1_000 * 24 * 3_600_000)
    (tmp_path / "x").write_bytes(as_jsonl([good, bad]))
    counts = imported(engine, tmp_path / "x").counts
    assert (1, {FUTURE: 1}) == (counts.new, dict(counts.skipped))


@on_sqlite
def test_progress_is_told_in_bytes_to_the_end(engine: Engine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runs, "BATCH", 100)
    sizes = []
    (tmp_path / "f").mkdir()
    for name in "xy":
        data = as_jsonl([make_row() for _ in range(250)])
        (tmp_path / "f" / name).write_bytes(data)
        sizes.append(len(data))
    told: list[tuple[int, int]] = []
    imported(engine, tmp_path / "f", progress=lambda done, of: told.append((done, of)))
    assert ((0, sum(sizes)), (sum(sizes), sum(sizes))) == (told[0], told[-1])
    assert sorted(told) == told
    assert len({done for done, _ in told}) > 4


@on_sqlite
def test_tenants_that_are_new_to_a_ledger_are_told(engine: Engine, tmp_path: Path):
    (tmp_path / "x").write_bytes(as_jsonl([make_row(tenant="a"), make_row(tenant="b")]))
    assert 0 == imported(engine, tmp_path / "x").strangers, "an empty ledger has nobody to mix with"
    (tmp_path / "x").write_bytes(as_jsonl([make_row(tenant="b"), make_row(tenant="c")]))
    assert 1 == imported(engine, tmp_path / "x").strangers


@on_sqlite
def test_only_rows_of_one_batch_are_in_memory(engine: Engine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runs, "BATCH", 10)
    (tmp_path / "x").write_bytes(as_csv([make_row() for _ in range(95)]))
    sizes = []
    take = taking.take

    def seen(engine, import_id, files, *rest, **options):
        sizes.append(sum(map(len, files)))
        return take(engine, import_id, files, *rest, **options)

    monkeypatch.setattr(taking, "take", seen)
    imported(engine, tmp_path / "x")
    assert [10] * 9 + [5] == sizes


@on_sqlite
def test_alerts_are_not_told_of_the_past(engine: Engine, tmp_path: Path):
    """Rows keep the time at which they were recorded, which is what alerts look at."""
    row = make_row(recorded_at=START_MS + 5_000)
    (tmp_path / "x").write_bytes(as_csv([row]))
    imported(engine, tmp_path / "x", clock=ManualClock(now=NOW))
    assert START_MS + 5_000 == stored(engine)[0].recorded_at


@on_sqlite
def test_two_ledgers_of_one_machine_meet_in_one(engine: Engine, tmp_path: Path):
    shared, one, other = (make_row(turn_id=name) for name in "soe")
    second = prepare(str(tmp_path / "second.sqlite3"))
    write_rows(second, [shared, other])
    write_rows(engine, [shared, one])
    (tmp_path / "x").write_bytes(as_csv(stored(second)))
    second.dispose()
    counts = imported(engine, tmp_path / "x").counts
    assert (1, 1, 3) == (counts.new, counts.known, turns_in(engine))
