from app.analysis.continuity import Share
from app.charts.residency import sessions_by_residency
from tests.support.charts import ListSource, quarter_hours


def chart(*sessions):
    return sessions_by_residency(ListSource(quarter_hours(2), session_shares=sessions))


def test_sessions_of_one_turn_are_drawn_apart_and_left_out_of_the_median():
    found = chart(Share(0, 1), Share(1, 2), Share(9, 10), Share(3, 3))
    more, single = found.data
    assert sum(more["y"]) == 3
    assert sum(single["y"]) == 1
    assert single["meta"] == {"role": "sessions_single"}
    assert found.summary == (
        "4 sessions; the median of those with two turns or more is 90 % incremental, "
        "1 never left it."
    )


def test_only_single_turns_say_that_nothing_could_be_continued():
    assert chart(Share(0, 1)).summary == (
        "1 session, each with one turn only: nothing could be continued."
    )


def test_without_single_turns_there_is_one_trace():
    assert len(chart(Share(1, 2)).data) == 1


def test_the_table_sums_to_the_sessions():
    found = chart(Share(0, 1), Share(1, 2), Share(2, 2), Share(0, 0))
    assert sum(row[1] for row in found.table.rows) == 3
