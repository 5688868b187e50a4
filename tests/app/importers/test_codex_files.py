"""What a rollout has copied from another one, and what became of the file itself."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given

from app.importers.codex import NO_USAGE, read, session_of, vectors
from app.importers.codex_forks import Whose
from app.importers.importer import Remark
from tests.support.grown import differing
from tests.support.importing import lines_of, torn
from tests.support.rollouts import (
    THREAD,
    Rollout,
    added,
    inputs,
    items,
    known,
    recorded,
    rows,
    skipped,
    thread,
    usage,
)

COPIED, UNVERIFIED = Whose.COPIED.value, Whose.UNVERIFIED.value


# Forks


def parent():
    file = Rollout()
    for size in (5_000, 5_200, 5_400, 5_600):
        file.sent().counted(usage(size))
    return file


def fork(copies, *own, at=60.0, **meta):
    """A child whose copied counts have the time of the fork."""
    file = Rollout(**{"name": "child", "forked_from_id": THREAD, **meta})
    file.meta(THREAD)
    for line in parent().lines[1:][: 2 * copies]:
        found = json.loads(line)
        file.line(found["type"], found["payload"], at)
    file.total = vectors_total(copies)
    for size in own:
        file.sent().counted(usage(size))
    return file


def vectors_total(copies):
    return added({}, *(usage(size) for size in (5_000, 5_200, 5_400, 5_600)[:copies]))


def history():
    return known(**{THREAD: vectors(lines_of(parent().data))})


def test_a_fork_counts_what_came_after_it():
    file = fork(4, 6_000, 6_100)
    assert [6_000, 6_100] == inputs(rows(file, parents=history()))
    assert 4 == len([why for why in skipped(file, parents=history()) if COPIED in why])


def test_a_fork_of_the_middle_and_a_parent_that_went_on():
    assert [7_000] == inputs(rows(fork(2, 7_000), parents=history()))


def test_an_agent_with_its_parents_meta_and_no_history_counts_all():
    """CASES 90 b."""
    assert [6_000, 6_100] == inputs(rows(fork(0, 6_000, 6_100), parents=history()))


def test_one_original_and_two_forks_without_totals_are_seven_requests():
    def lines(name, sizes, **meta):
        file = Rollout(name, **meta)
        for size in sizes:
            file.counted(usage(size), total=None, at=60)
        return file

    one = lines("one", [1, 2, 3, 4])
    parents = known(one=vectors(lines_of(one.data)))
    forks = [
        lines("two", [1, 2, 3, 4, 5, 6], forked_from_id="one"),
        lines("three", [1, 2, 9], forked_from_id="one"),
    ]
    assert 13 == len(one.lines[1:]) + sum(len(file.lines[1:]) for file in forks)
    found = [inputs(rows(file, parents=parents)) for file in (one, *forks)]
    assert [[1, 2, 3, 4], [5, 6], [9]] == found


def test_without_its_parent_the_boundary_of_a_fork_is_unverified_and_nothing_is_counted():
    file = fork(2, 6_000)
    assert [] == rows(file)
    assert 3 == len([why for why in skipped(file) if UNVERIFIED in why])


def test_a_fork_whose_turns_tell_when_they_began_needs_no_parent():
    child = thread(7, at=100)
    file = Rollout(child, forked_from_id=THREAD).meta(THREAD).started(thread(2, at=50))
    file.sent().counted(usage(5_000)).done(thread(2, at=50), time_to_first_token_ms=3)
    file.started(thread(3, at=101)).sent().counted(usage(6_000)).done(time_to_first_token_ms=4)
    assert [(6_000, 4.0)] == [(row.input_tokens, row.ttft_ms) for row in rows(file)]


def test_a_fork_with_records_knows_its_own():
    file = Rollout("child", forked_from_id=THREAD).meta(THREAD)
    file.recorded(usage(5_000), "resp_1", thread_id=THREAD)
    file.line("compacted", {"compaction_response_id": "resp_1"})
    file.recorded(usage(5_200), "resp_2", thread_id=THREAD)
    file.sent().recorded(usage(6_000), "resp_3")
    file.sent().recorded(usage(6_100), "resp_4")
    assert [("resp_3", 1, 1, None), ("resp_4", 1, 2, None)] == [
        (row.response_id, row.epoch, row.epoch_turn, row.epoch_reset_reason) for row in rows(file)
    ]
    assert 2 == len(skipped(file))


def test_a_fork_that_points_into_its_parents_file_has_copied_nothing():
    file = Rollout("child", forked_from_id=THREAD, forked_from_ordinal_exclusive=25)
    assert [6_000] == inputs(rows(file.sent().counted(usage(6_000))))


def test_a_sub_agent_that_opens_with_its_parents_history_counts_its_own():
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    file = fork(1, 6_000, 6_100, forked_from_id=None, source=spawned)
    assert [6_000, 6_100] == inputs(rows(file, parents=history()))
    assert 1 == len(skipped(file, parents=history()))
    assert {("child", THREAD)} == {
        (row.session, row.root_session) for row in rows(file, parents=history())
    }


# Files


def test_what_a_file_is_called_does_not_make_its_rows():
    one = rows(recorded(), name=f"rollout-2026-11-01T10-00-00-{THREAD}.jsonl")
    assert one == rows(recorded(), name="x") == rows(recorded())


def test_a_file_whose_beginning_is_lost_is_of_the_session_that_its_name_tells():
    name = f"rollout-2026-11-01T10-00-00-{THREAD}.jsonl.zst"
    file = parent()
    whole = rows(file)
    file.lines[0] = file.lines[0][:-9]
    found = rows(file, name=name)
    assert [row.turn_id for row in whole] == [row.turn_id for row in found]
    assert {(THREAD, THREAD, "unknown")} == {
        (row.session, row.root_session, row.upstream) for row in found
    }
    assert [] == rows(file)
    assert "line 3: is of a session that the file does not name" in skipped(file)


def test_a_lost_beginning_does_not_make_a_fork_its_own_parent():
    file = fork(4, 6_000, name=thread(5))
    file.lines[0] = b"{"
    name = f"rollout-2026-11-01T10-00-00-{thread(5)}.jsonl"
    assert [thread(5)] == [row.session for row in rows(file, name=name, parents=history())]


def test_the_name_of_a_file_tells_its_session():
    assert THREAD == session_of(f"rollout-2026-11-01T10-00-00-{THREAD.upper()}.jsonl")
    assert THREAD == session_of(f"rollout-2026-11-01T10-00-00-{THREAD}_{thread(2)}.jsonl.zst")
    assert session_of("history.jsonl") is session_of("rollout-x.jsonl") is None


def test_a_file_that_took_the_place_of_its_sessions_earlier_one_makes_the_same_rows():
    """After going back to an earlier turn: the same thread, and a copy of what came before."""
    earlier = recorded()
    later = Rollout(thread(9), forked_from_id=THREAD, session_id=THREAD)
    later.raw(*earlier.lines[1:])
    later.total = earlier.total
    later.sent().recorded(usage(4_000), "resp_4", thread_id=THREAD)
    name = f"rollout-2026-11-01T10-00-00-{THREAD}_{thread(9)}.jsonl"
    found = rows(later, name=name)
    assert ["resp_1", "resp_2", "resp_3", "resp_4"] == [row.response_id for row in found]
    assert [row.turn_id for row in rows(earlier)] == [row.turn_id for row in found[:3]]
    assert {THREAD} == {row.session for row in found}


def test_another_version_may_take_a_session_up_again():
    file = Rollout().counted(usage(5_000)).meta(THREAD, cli_version="0.100.0")
    file.counted(usage(6_000))
    assert ["0.99.0", "0.100.0"] == [row.client_version for row in rows(file)]


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"id":"s","timestamp":"2025-06-01T10:00:00Z","instructions":null}',
         b'{"record_type":"state"}', b'{"type":"message","role":"user","content":[]}',
         b'{"type":"reasoning"}'],
        Rollout().sent().answered().lines,
    ],
)  # fmt: skip
def test_a_session_without_usage_is_told_and_costs_nothing_that_is_known(lines):
    assert [Remark(NO_USAGE)] == items(b"\n".join(lines) + b"\n")


def test_a_line_that_is_torn_junk_or_unknown_costs_itself_alone():
    file = parent()
    lines = file.lines
    lines[3:3] = [b"junk", b"\x00" * 9, b"", b'{"timestamp":"t","type":"new","payload":{}}']
    lines[-1] = lines[-1][:-20]
    found = items(b"\n".join(lines))
    assert [5_000, 5_200, 5_400] == inputs(rows(b"\n".join(lines)))
    assert [
        "line 4: is not one JSON object",
        "line 5: holds nothing but NUL bytes",
        "line 7: is of a type that this version does not know",
        "line 13: ends within its record",
    ] == [str(item) for item in found if not hasattr(item, "turn_id")]


def test_the_rest_of_a_torn_line_is_read():
    file = parent()
    torn = [*file.lines[:3], file.lines[3][:40] + file.lines[4], *file.lines[5:]]
    assert rows(file)[1].turn_id == rows(b"\n".join(torn) + b"\n")[1].turn_id
    assert ["line 4: is torn: another record begins in it"] == skipped(b"\n".join(torn) + b"\n")


@given(torn(recorded("t").done("t", time_to_first_token_ms=5).data))
def test_whatever_became_of_a_file_its_good_lines_are_read(data):
    """A record whose line is whole makes its row, unless its session or its time is lost."""
    wanted = {row.response_id: row.turn_id for row in rows(recorded("t"))}
    first, *others = recorded("t").lines
    found = {row.turn_id for row in rows(data, name=f"rollout-x-{THREAD}.jsonl")}
    left = set(data.split(b"\n")) if data.startswith(first) else set()
    for line in left.intersection(others):
        if b"token_usage_record" in line:
            assert wanted[json.loads(line)["payload"]["response_id"]] in found


def test_without_a_beginning_and_a_telling_name_records_tell_their_session_and_turns_none():
    file = Rollout()
    file.lines[0] = b'{"timestamp":"t","type":"session_meta","payload":{"cwd":"/"}}'
    assert [] == rows(file.started("t").sent().answered().done("t"))
    assert [THREAD] == [row.session for row in rows(file.recorded(usage(5_000), "r"))]


def test_a_time_that_is_none_is_told():
    file = Rollout()
    file.raw(Rollout().counted(usage(5_000)).lines[1].replace(b"2026-", b"x"))
    assert (["line 2: has no time that can be read"], []) == (skipped(file), rows(file))


def test_times_are_utc_and_those_of_the_lines():
    (row,) = rows(Rollout().counted(usage(2_000), at=5))
    moment = datetime.fromtimestamp(row.ended_at / 1_000, UTC)
    assert "2026-11-01T10:00:05+00:00" == moment.isoformat()


def test_a_shorter_copy_of_a_file_makes_the_rows_of_the_longer_one_that_it_has():
    file = recorded("t").done("t", time_to_first_token_ms=5)
    whole = {row.turn_id: row for row in rows(file)}
    for length in range(0, len(file.data), 97):
        for row in rows(file.data[:length]):
            assert row == replace(whole[row.turn_id], ttft_ms=row.ttft_ms)


def test_reading_needs_nothing_around_it():
    assert inputs(rows(parent())) == inputs(list(read(lines_of(parent().data))))


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    file = recorded("t").done("t", time_to_first_token_ms=5).started("u").sent().answered()
    file.event("turn_aborted", turn_id="u").started("v").recorded(usage(9_999), "r")
    file.line("compacted", {"compaction_response_id": "r"}).done("v", time_to_first_token_ms=7)
    assert [] == differing(read, file.data)
    assert [] == differing(read, parent().data)
