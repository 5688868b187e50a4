import os
from pathlib import Path

import pytest

from app.ledger.journal import segments
from app.ledger.journal.records import Ended, ended, header
from app.ledger.journal.segments import Appender, create, leftovers
from tests.support.rows import make_row

ROW = make_row(turn_id="turn_a")
LINE = ended(ROW)


def test_a_living_process_is_left_alone_and_a_dead_one_is_found(tmp_path: Path):
    living, dead = create(tmp_path), create(tmp_path)
    Appender(dead, 1_000).append(LINE)
    dead.close()  # as the system does when a process ends
    found = list(leftovers(tmp_path))
    assert [dead.path] == [directory.path for directory in found]
    assert [ROW] == [line.record.row for line in found[0].segments[0].lines()]
    living.close()


def test_what_one_process_has_taken_over_no_other_takes(tmp_path: Path):
    create(tmp_path).close()
    mine = list(leftovers(tmp_path))
    assert ([], 1) == (list(leftovers(tmp_path)), len(mine))


def test_other_files_beside_the_directories_are_left_alone(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    assert [] == list(leftovers(tmp_path))
    assert [] == list(leftovers(tmp_path / "missing"))


def test_only_the_owner_may_read_a_journal(tmp_path: Path):
    directory = create(tmp_path / "journal")
    appender = Appender(directory, 1_000)
    modes = [p.stat().st_mode & 0o777 for p in (directory.path, appender.current.path)]
    assert [0o700, 0o600] == modes


def test_a_full_segment_is_followed_by_another_that_goes_on_counting(tmp_path: Path):
    appender = Appender(create(tmp_path), len(header(0)) + len(LINE))
    for _ in range(3):
        segment, _ = appender.append(LINE, is_end=True)
        segment.waiting += 1
    numbers = [
        line.record.number
        for segment in appender.directory.segments
        for line in segment.lines()
        if isinstance(line.record, Ended)
    ]
    assert [0, 1, 2] == numbers
    assert len(appender.directory.segments) == 3


def test_a_full_segment_in_which_nothing_waits_is_deleted_when_the_next_begins(tmp_path: Path):
    appender = Appender(create(tmp_path), 1)
    first, _ = appender.append(LINE, is_end=True)
    second, _ = appender.append(LINE, is_end=True)
    assert (False, True) == (first.path.exists(), second.path.exists())
    assert [second] == appender.directory.segments


def test_a_line_that_fits_only_in_part_is_cut_off_again(tmp_path: Path, monkeypatch):
    appender = Appender(create(tmp_path), 10_000)
    appender.append(LINE, is_end=True)
    write = os.write
    monkeypatch.setattr(segments.os, "write", lambda file, data: write(file, data[:20]))
    with pytest.raises(OSError, match="No space left on device"):
        appender.append(LINE, is_end=True)
    monkeypatch.undo()
    appender.append(LINE, is_end=True)
    assert [0, 1] == [line.record.number for line in appender.current.lines()]
    assert appender.current.reader.torn == 0


def test_a_segment_that_cannot_be_begun_leaves_no_file_and_the_former_in_use(
    tmp_path: Path, monkeypatch
):
    appender = Appender(create(tmp_path), 1)
    first, _ = appender.append(LINE, is_end=True)
    first.waiting += 1
    write = os.write
    monkeypatch.setattr(segments.os, "write", lambda file, data: write(file, data[:20]))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device"):
            appender.append(LINE, is_end=True)
    assert [first.path] == sorted(appender.directory.path.glob("*.journal"))
    monkeypatch.undo()
    appender.append(LINE, is_end=True)
    found = [line.record for one in appender.directory.segments for line in one.lines()]
    assert [Ended(ROW, 0), Ended(ROW, 1)] == found


def test_a_place_where_no_file_can_be_made_is_given_up_and_left_empty(tmp_path: Path, monkeypatch):
    def refuse(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(segments.os, "open", refuse)
    with pytest.raises(OSError, match="No locks available"):
        create(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_a_directory_knows_the_size_of_its_files(tmp_path: Path):
    appender = Appender(create(tmp_path), 1, lambda: b"")
    for _ in range(3):
        segment, _ = appender.append(LINE)
        segment.waiting += 1
    directory = appender.directory
    assert sum(one.path.stat().st_size for one in directory.segments) == directory.size
    directory.forget(directory.segments[0])
    assert sum(one.path.stat().st_size for one in directory.segments) == directory.size
    directory.close()
    (found,) = leftovers(tmp_path)
    assert directory.size == found.size


def test_a_record_is_read_at_its_place(tmp_path: Path):
    appender = Appender(create(tmp_path), 10_000)
    appender.append(LINE)
    segment, offset = appender.append(ended(make_row(turn_id="turn_x")))
    record = segment.record(offset, segment.size - offset)
    assert isinstance(record, Ended)
    assert record.row.turn_id == "turn_x"
    segment.path.unlink()
    assert segment.record(offset, 10) is None


def test_removing_a_directory_leaves_nothing(tmp_path: Path):
    directory = create(tmp_path)
    Appender(directory, 1_000).append(LINE)
    directory.remove()
    assert [] == list(tmp_path.iterdir())
