"""The journal against a naive one: a list of what was begun, ended and settled."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.journal import records, segments
from app.ledger.journal.journal import Journal, Waiting
from tests.support.rows import make_begun, make_row

HEADER = len(records.header(0))


def start(n: int):
    return make_begun(turn_id=f"turn_{n}", started_at=1_000 + n)


def row(n: int):
    return make_row(turn_id=f"turn_{n}", started_at=1_000 + n, ended_at=2_000 + n)


def killed(journal: Journal) -> None:
    """The process ends as SIGKILL ends it: its locks go, its files stay as they are."""
    assert journal._appender is not None
    for directory in (journal._appender.directory, *journal._taken_over):
        directory.close()


def left_behind(root: Path) -> tuple[list[str], list[str]]:
    """Turns whose rows the next process finds, and those that it finds under way."""
    journal = Journal(root)
    found = journal.take_over()
    rows = journal.read(place for row, place in found if row is None and place is not None)
    lost = [row for row, _ in found if row is not None]
    assert all(row.error_code == "process_ended" for row in lost)
    killed(journal)
    return [row.turn_id for row in rows], [row.turn_id for row in lost]


@given(
    st.lists(st.tuples(st.sampled_from("bbees"), st.integers(1, 4)), max_size=40),
    st.integers(1, 3),
    st.sampled_from([1, HEADER + 200, HEADER + 2_000]),
)
def test_whatever_happened_the_next_process_finds_what_is_not_settled(steps, kills, size):
    with TemporaryDirectory() as folder:
        root = Path(folder)
        journal = Journal(root, segment_bytes=size)
        under_way: list[int] = []
        waiting: list[tuple[int, Waiting]] = []
        number = 0
        for what, count in steps:
            if what == "b":
                under_way.append(number)
                journal.begin(start(number))
                number += 1
            elif what == "e" and under_way:
                ended = under_way.pop(count % len(under_way))
                waiting.append((ended, Waiting(row(ended), journal.end(row(ended)))))
            elif what == "s":
                journal.settled(one for _, one in waiting[:count])
                del waiting[:count]
        killed(journal)
        for _ in range(kills):  # a process that is killed before it settles leaves all again
            found = left_behind(root)
        assert ([f"turn_{n}" for n, _ in waiting], [f"turn_{n}" for n in under_way]) == found


def test_what_is_settled_leaves_no_file(tmp_path: Path):
    journal = Journal(tmp_path, segment_bytes=1)
    journal.begin(start(1))
    place = journal.end(row(1))
    journal.settled([Waiting(row(1), place)])
    journal.close()
    assert [] == list(tmp_path.iterdir())


def test_a_process_that_ends_in_good_order_leaves_what_waits(tmp_path: Path):
    journal = Journal(tmp_path)
    journal.begin(start(1))
    journal.end(row(1))
    journal.begin(start(2))
    journal.close()
    assert (["turn_1"], ["turn_2"]) == left_behind(tmp_path)


def test_what_was_taken_over_goes_once_it_is_settled(tmp_path: Path):
    first = Journal(tmp_path)
    first.end(row(1))
    first.begin(start(2))
    killed(first)
    second = Journal(tmp_path)
    found = second.take_over()
    second.settled(found[:1])
    assert len(list(tmp_path.iterdir())) == 2
    second.settled(found[1:])
    assert len(list(tmp_path.iterdir())) == 1
    second.close()
    assert [] == list(tmp_path.iterdir())


def test_a_living_process_keeps_its_turns(tmp_path: Path):
    living = Journal(tmp_path)
    living.begin(start(1))
    living.end(row(2))
    other = Journal(tmp_path)
    assert [] == other.take_over()


def test_beyond_the_bound_rows_are_missed_and_counted(tmp_path: Path):
    journal = Journal(tmp_path, limit=5_000)
    places = [journal.end(row(n)) for n in range(20)]
    missed = places.count(None)
    state = journal.state()
    assert 0 < missed < 20
    assert (missed, "the bound is reached") == (state.missed, state.last_error)
    assert state.bytes <= 5_000


def test_room_that_was_settled_may_be_used_again(tmp_path: Path):
    journal = Journal(tmp_path, limit=9_000, segment_bytes=3_000)
    for n in range(50):
        place = journal.end(row(n))
        journal.settled([Waiting(row(n), place)])
    assert journal.state().missed == 0


def test_where_it_cannot_be_made_turns_go_on_without_it(tmp_path: Path):
    (tmp_path / "file").write_text("")
    journal = Journal(tmp_path / "file" / "journal")
    journal.begin(start(1))
    assert journal.end(row(1)) is None
    journal.settled([Waiting(row(1), None)])
    assert journal.state().missed == 2
    assert journal.state().last_error == "Not a directory"
    assert [] == journal.take_over()
    journal.close()


def test_where_it_could_not_be_made_it_is_made_as_soon_as_it_can_be(tmp_path: Path):
    place = tmp_path / "journal"
    place.write_text("")
    journal = Journal(place)
    journal.begin(start(1))
    place.unlink()
    assert journal.end(row(2)) is not None
    assert (1, None) == (journal.state().missed, journal.state().last_error)
    killed(journal)
    assert (["turn_2"], []) == left_behind(place)


def test_what_was_taken_over_goes_although_nothing_can_be_written(tmp_path: Path, full_disk):
    first = Journal(tmp_path)
    first.end(row(1))
    killed(first)
    full_disk(True)
    second = Journal(tmp_path)
    second.settled(second.take_over())
    assert [] == list(tmp_path.iterdir())
    second.close()


def test_after_its_end_nothing_is_taken_or_deleted(tmp_path: Path):
    journal = Journal(tmp_path)
    place = journal.end(row(1))
    journal.close()
    journal.settled([Waiting(row(1), place)])
    assert journal.end(row(2)) is None
    assert journal.state().missed == 1
    assert (["turn_1"], []) == left_behind(tmp_path)


def test_a_turn_whose_end_went_with_its_segment_is_not_under_way(tmp_path: Path):
    journal = Journal(tmp_path, segment_bytes=3_000)
    journal.begin(start(1))
    journal.begin(start(2))
    ended = [*(row(n) for n in range(3, 10)), row(1), *(row(n) for n in range(10, 20))]
    journal.settled([Waiting(one, journal.end(one)) for one in ended])
    killed(journal)
    assert ([], ["turn_2"]) == left_behind(tmp_path)


def test_what_a_newer_version_has_left_stays_for_it(tmp_path: Path, monkeypatch, caplog):
    with monkeypatch.context() as later:
        later.setattr(records, "VERSION", records.VERSION + 1)
        newer = Journal(tmp_path)
        newer.begin(start(1))
        newer.end(row(2))
        killed(newer)
    assert ([], []) == left_behind(tmp_path)
    assert "a newer version has written it" in caplog.text
    Journal(tmp_path).close()
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    assert (["turn_2"], ["turn_1"]) == left_behind(tmp_path)


def test_what_cannot_be_read_hides_nothing_else_and_stays(tmp_path: Path, monkeypatch, caplog):
    for number in range(3):
        journal = Journal(tmp_path)
        journal.end(row(number))
        killed(journal)
    bad = min(tmp_path.iterdir())
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.parent == bad:
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    rows, _ = left_behind(tmp_path)
    assert 2 == len(rows)
    assert f"{bad} is left as it is: Permission denied" in caplog.text
    Journal(tmp_path).close()
    assert bad.is_dir()


def test_processes_that_share_a_directory_take_over_each_dead_one_once(tmp_path: Path):
    dead = [Journal(tmp_path) for _ in range(5)]
    for number, journal in enumerate(dead):
        journal.end(row(number))
        killed(journal)
    living = [Journal(tmp_path) for _ in range(2)]
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(lambda one: one.read(p for _, p in one.take_over()), living))
    assert [f"turn_{n}" for n in range(5)] == sorted(r.turn_id for rows in found for r in rows)


@pytest.fixture
def full_disk(monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    def switch(on: bool):
        if on:
            monkeypatch.setattr(segments.os, "write", refuse)
        else:
            monkeypatch.undo()

    return switch


def test_a_full_disk_costs_safety_and_is_told_until_it_is_over(tmp_path: Path, full_disk):
    journal = Journal(tmp_path)
    journal.begin(start(1))
    full_disk(True)
    assert journal.end(row(1)) is None
    assert journal.state().last_error == "No space left on device"
    full_disk(False)
    assert journal.end(row(2)) is not None
    assert journal.state().last_error is None
    killed(journal)
    assert (["turn_2"], ["turn_1"]) == left_behind(tmp_path)


def test_a_row_that_was_only_in_memory_and_was_settled_is_not_under_way(tmp_path: Path, full_disk):
    journal = Journal(tmp_path)
    journal.begin(start(1))
    full_disk(True)
    place = journal.end(row(1))
    full_disk(False)
    journal.settled([Waiting(row(1), place)])
    journal.close()
    assert [] == list(tmp_path.iterdir())


def test_a_place_that_cannot_be_read_any_more_is_counted(tmp_path: Path):
    journal = Journal(tmp_path)
    place = journal.end(row(1))
    assert place is not None
    place.segment.path.unlink()
    assert [] == journal.read([place])
    assert journal.state().torn == 1
