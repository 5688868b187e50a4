from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.alerts import links
from app.alerts.groups import labels_of
from app.alerts.measures import windows
from app.alerts.signals import Signal
from app.ledger import filters, queries
from app.ledger.filters import Filter
from app.ledger.writer import write_rows
from tests.support.alerts import MINUTE, bad_row, good_row, make_rule
from tests.support.measuring import BEGIN, rows, some_rules
from tests.support.rows import unknown_usage


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_conditions asks of both kinds."""
    return "sqlite"


many = settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
RATES = (
    Signal.MISMATCH_RATE,
    Signal.BREAK_RATE,
    Signal.INCREMENTAL_RATE,
    Signal.ERROR_RATE,
)
END = BEGIN + 60_000


def read_back(link: str) -> Filter:
    return filters.parse(parse_qsl(urlsplit(link).query, keep_blank_values=True), now=0.0)


def window(rule) -> tuple[int, int]:
    end = END - rule.delay * 1_000
    return end - rule.window * 1_000, end


@many
@given(some_rules(RATES), st.lists(rows, max_size=25))
def test_the_rows_of_a_link_are_those_that_were_counted(holding, rule, found):
    """For the incremental rate the others: those that were not continued."""
    engine = holding(found)
    by_turns = make_rule(**rule.as_dict() | {"weight": "turns"})
    for key, measure in next(windows(engine, by_turns, END, END))[1].items():
        expected = measure.part
        if rule.signal is Signal.INCREMENTAL_RATE:
            expected = measure.whole - measure.part
        view = links.offending(rule, labels_of(key), *window(rule))
        assert expected == queries.count(engine, view)


@many
@given(some_rules(), st.lists(rows, min_size=5, max_size=25))
def test_a_link_read_back_is_the_filter_it_was_made_from(holding, rule, found):
    engine = holding(found)
    for key in next(windows(engine, rule, END, END))[1]:
        view = links.offending(rule, labels_of(key), *window(rule))
        assert view == read_back(links.rows_link("https://warmline.example", view))
        assert view == read_back(links.csv_link("", view))


@pytest.mark.parametrize("signal", ["cached_ratio", "ttft_p95", "missed_tokens"])
def test_without_a_numerator_of_rows_all_turns_that_could_count_are_shown(
    engine: Engine, signal: str
):
    write_rows(
        engine,
        [
            good_row(BEGIN),
            bad_row(BEGIN, status="incomplete", mode=None),
            unknown_usage(recorded_at=BEGIN),
            good_row(BEGIN, status="failed"),
            good_row(BEGIN, kind="warmup"),
        ],
    )
    view = links.offending(make_rule(signal=signal), {}, BEGIN, BEGIN + MINUTE)
    assert 3 == queries.count(engine, view)


@pytest.mark.parametrize("signal", ["mismatch_rate", "break_rate", "incremental_rate"])
def test_a_turn_that_is_only_marked_eligible_is_not_in_the_link(engine: Engine, signal: str):
    """A rate counts generations that came to their end in a known mode."""
    write_rows(
        engine,
        [
            bad_row(BEGIN),
            bad_row(BEGIN, kind="compaction"),
            bad_row(BEGIN, status="failed"),
            bad_row(BEGIN, mode=None),
        ],
    )
    view = links.offending(make_rule(signal=signal), {}, BEGIN, BEGIN + MINUTE)
    assert 1 == queries.count(engine, view)


def test_a_mode_that_a_rule_leaves_out_stays_out_beside_the_unknown(engine: Engine):
    write_rows(engine, [bad_row(BEGIN, mode=mode) for mode in ("ws_full", "http_full", None)])
    view = links.offending(make_rule(filter="mode=!ws_full"), {}, BEGIN, BEGIN + MINUTE)
    assert 1 == queries.count(engine, view)


def test_what_a_rules_own_filter_leaves_out_stays_out(engine: Engine):
    write_rows(engine, [bad_row(BEGIN), bad_row(BEGIN, model="b"), bad_row(BEGIN, client="c")])

    def count(text: str, **labels: str) -> int:
        rule = make_rule(filter=text)
        return queries.count(engine, links.offending(rule, labels, BEGIN, BEGIN + MINUTE))

    assert [3, 2, 1, 0, 0] == [
        count(""),
        count("model=!b"),
        count("model=b&model=c", model="b"),
        count("model=a", model="b"),
        count("kind=warmup"),
    ]


def test_a_group_is_followed_by_its_labels(engine: Engine):
    write_rows(engine, [bad_row(BEGIN, model=model) for model in ("a", "a", None, "!x")])
    rule = make_rule(group_by=["model"])
    assert [2, 1, 1] == [
        queries.count(engine, links.offending(rule, {"model": name}, BEGIN, BEGIN + MINUTE))
        for name in ("a", "unknown", "!x")
    ]


def test_the_group_of_the_others_leads_to_the_whole_rule(engine: Engine):
    write_rows(engine, [bad_row(BEGIN, model=model) for model in ("a", "b")])
    rule = make_rule(group_by=["model", "client"])
    others = {"model": "other", "client": "other"}
    assert links.offending(rule, {}, BEGIN, END) == links.offending(rule, others, BEGIN, END)
    one = links.offending(rule, others | {"client": "codex"}, BEGIN, END)
    assert ("other",) == one.include["model"]


def test_links_are_absolute_and_go_by_the_time_of_recording():
    base = "https://warmline.example"
    view = links.offending(make_rule(), {}, 0, MINUTE)
    query = (
        "from=1970-01-01T00%3A00%3A00.000Z&to=1970-01-01T00%3A01%3A00.000Z&by=recorded"
        "&mode=%21unknown&reason=prefix_mismatch&eligible=true"
        "&status=completed&status=incomplete&kind=generation&source=gateway&source=embedded"
    )
    assert f"{base}/requests?{query}" == links.rows_link(base, view)
    assert f"{base}/api/requests.csv?{query}" == links.csv_link(base, view)
    assert f"{base}/alerts?rule=file-a%26b" == links.alert_link(base, "file-a&b")
    assert f"{base}/alerts?silence=r1&model=a+b&client=x%26y" == links.silence_link(
        base, "r1", {"model": "a b", "client": "x&y"}
    )


def test_a_window_that_began_before_1970_begins_in_1970():
    view = links.offending(make_rule(), {}, -MINUTE, MINUTE)
    assert (0, MINUTE) == (view.start, view.end)
