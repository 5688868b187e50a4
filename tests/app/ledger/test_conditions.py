import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select, text

from app.ledger.conditions import cache_class, cache_class_of, matcher, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.ledger import everything, filters, rows
from tests.support.rows import START_MS, make_row, unknown_usage

many = settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)


def selected(engine: Engine, view: Filter) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(select(turns.c.turn_id).where(where(view))).scalars())


def names(found: list[TurnRow]) -> set[str]:
    return {row.turn_id for row in found}


@many
@given(st.lists(rows, max_size=12), filters())
def test_the_database_and_the_live_view_select_the_same_rows(holding, found, view):
    matches = matcher(view)
    expected = [
        row
        for row in found
        if view.start <= (row.recorded_at if view.by == "recorded" else row.started_at) < view.end
        and matches(row)
    ]
    assert names(expected) == selected(holding(found), view)


@many
@given(st.lists(rows, max_size=12), filters(most=1))
def test_a_dimension_and_its_exclusion_part_the_rows(holding, found, view):
    engine = holding(found)
    whole = Filter(start=view.start, end=view.end, by=view.by)
    for name, values in (view.include or view.exclude).items():
        kept = selected(engine, whole.narrow(name, *values))
        left_out = selected(
            engine, Filter(start=view.start, end=view.end, by=view.by, exclude={name: values})
        )
        assert kept | left_out == selected(engine, whole)
        assert set() == kept & left_out


def test_a_window_holds_its_beginning_and_not_its_end(engine: Engine):
    found = [make_row(started_at=START_MS + offset) for offset in (-1, 0, 9, 10)]
    write_rows(engine, found)
    assert names(found[1:3]) == selected(engine, Filter(start=START_MS, end=START_MS + 10))


def test_by_recorded_the_window_is_that_of_the_writing(engine: Engine):
    row = make_row(started_at=START_MS, recorded_at=START_MS + 5_000)
    write_rows(engine, [row])
    window = {"start": START_MS + 5_000, "end": START_MS + 5_001}
    assert set() == selected(engine, Filter(**window))
    assert {row.turn_id} == selected(engine, Filter(**window, by="recorded"))


def test_a_session_is_found_by_name_and_by_key(engine: Engine):
    row = make_row(session="agent-7", session_key="k7")
    write_rows(engine, [row, make_row(session="other", session_key="k8")])
    for value in ("agent-7", "k7"):
        assert {row.turn_id} == selected(engine, everything().narrow("session", value))


def test_of_a_root_are_its_own_turns_its_sub_agents_and_those_without_a_name(engine: Engine):
    found = [
        make_row(session="main", root_session="main", session_key="1"),
        make_row(session="agent", root_session="main", session_key="2"),
        make_row(session=None, root_session="main", session_key="3"),
    ]
    others = [
        make_row(session="agent", root_session="other", session_key="2"),
        make_row(session="main", root_session=None, session_key="1"),
    ]
    write_rows(engine, [*found, *others])
    assert names(found) == selected(engine, everything().narrow("root", "main"))
    assert names([*found, others[1]]) == selected(
        engine, everything().narrow("root", "main", "unknown")
    )


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_root_is_looked_up_by_its_sessions(engine: Engine):
    asked = select(turns.c.id).where(where(everything().narrow("root", "main")))
    statement = asked.order_by(turns.c.started_at.desc(), turns.c.id.desc()).limit(50)
    compiled = statement.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        plan = [str(step) for step in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
    for index in ("ix_turns_session_key_started_at", "COVERING INDEX ix_turns_sub_agents"):
        assert any(index in step for step in plan), plan
    assert not any("SCAN turns" in step or "ix_turns_started_at_id" in step for step in plan)


def test_unknown_means_rows_without_a_value(engine: Engine):
    found = [make_row(mode=None), make_row(mode="ws_full"), make_row(mode=None, model=None)]
    write_rows(engine, found)
    assert names([found[0], found[2]]) == selected(engine, everything().narrow("mode", "unknown"))
    assert names([found[2]]) == selected(engine, everything().narrow("model", "unknown"))


def test_a_verdict_may_be_unknown_and_that_is_not_to_have_none(engine: Engine):
    found = [make_row(cache_verdict=verdict, cache_grade=verdict) for verdict in ("unknown", None)]
    write_rows(engine, found)
    for name in ("verdict", "grade"):
        for row, word in zip(found, ("unknown", "unjudged"), strict=True):
            assert names([row]) == selected(engine, everything().narrow(name, word))


def test_breaks_are_found_by_their_group_and_all_others_are_of_none(engine: Engine):
    parted = {"mode": "ws_full", "reason": "prefix_mismatch"}
    found = [make_row(**parted, fingerprint="f1"), make_row(**parted), make_row(fingerprint="f1")]
    write_rows(engine, found)
    groups = ("f1", "reason:prefix_mismatch", "unknown")
    for row, group in zip(found, groups, strict=True):
        assert names([row]) == selected(engine, everything().narrow("break", group))
    assert names(found[:2]) == selected(engine, everything().narrow("break", *groups[:2]))
    window = everything()
    every = Filter(start=window.start, end=window.end, exclude={"break": ("unknown",)})
    assert names(found[:2]) == selected(engine, every)


def test_excluding_a_value_keeps_rows_without_one(engine: Engine):
    found = [make_row(client=None), make_row(client="codex"), make_row(client="pi")]
    write_rows(engine, found)
    view = Filter(start=START_MS, end=START_MS + 1, exclude={"client": ("codex",)})
    assert names([found[0], found[2]]) == selected(engine, view)


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("RESP_1", True),
        ("5.6", True),
        ("agent", True),
        ("rate_limit", True),
        ("%", False),
        ("resp_1%", False),
        ("resp-1", False),
    ],
)
def test_q_looks_for_plain_text_in_ids_session_model_and_error(
    engine: Engine, text: str, hit: bool
):
    row = make_row(
        response_id="resp_1", model="gpt-5.6-sol", session="Agent", error_code="rate_limited"
    )
    write_rows(engine, [row])
    view = Filter(start=START_MS, end=START_MS + 1, q=text)
    assert hit == bool(selected(engine, view))
    assert hit == matcher(view)(row)


@pytest.mark.parametrize(
    ("given_tokens", "cached", "expected"),
    [
        (100, 100, "hit"),
        (100, 80, "hit"),
        (100, 79, "partial"),
        (100, 1, "partial"),
        (100, 0, "miss"),
        (0, 0, "unknown"),
        (100, None, "unknown"),
        (None, 5, "unknown"),
    ],
)
def test_a_hit_is_four_fifths_of_the_input_and_a_miss_is_none_of_it(
    engine: Engine, given_tokens, cached, expected: str
):
    row = make_row(input_tokens=given_tokens, cached_tokens=cached)
    write_rows(engine, [row])
    assert expected == cache_class_of(row)
    with engine.connect() as connection:
        assert [expected] == connection.execute(select(cache_class)).scalars().all()


def test_where_usage_contradicts_itself_the_cache_class_is_unknown():
    assert "unknown" == cache_class_of(make_row(usage_state="inconsistent"))
    assert "unknown" == cache_class_of(unknown_usage())
