from datetime import UTC, datetime

import pytest
from hypothesis import given

from app.errors import BadParameterError
from app.ledger.filters import CLOSED, DIMENSIONS, Filter, parse
from app.ledger.rows import to_ms
from tests.support.clock import START
from tests.support.ledger import filters
from tests.support.rows import START_MS

HOUR = 3_600_000


def read(query=(), **options) -> Filter:
    return parse(query, now=START, **options)


def ms(*parts: int) -> int:
    return to_ms(datetime(*parts, tzinfo=UTC).timestamp())


def test_without_parameters_a_filter_is_the_last_day():
    view = read()
    assert (START_MS - 24 * HOUR, START_MS) == (view.start, view.end)
    assert ("UTC", "started", {}, {}, None) == (
        view.tz,
        view.by,
        view.include,
        view.exclude,
        view.q,
    )
    assert view.follows_now


def test_the_default_range_is_the_callers():
    assert START_MS - HOUR == read(default_from="now-1h").start


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now-90s", START_MS - 90_000),
        ("now-15m", START_MS - 15 * 60_000),
        ("now-6h", START_MS - 6 * HOUR),
        ("now-7d", START_MS - 7 * 24 * HOUR),
        ("now-2w", START_MS - 14 * 24 * HOUR),
        ("2026-11-01T12:00:00Z", ms(2026, 11, 1, 12)),
        ("2026-11-01T12:00:00.250Z", ms(2026, 11, 1, 12) + 250),
        ("2026-11-01T12:00:00+02:00", ms(2026, 11, 1, 10)),
        ("2026-11-01T12:00:00 02:00", ms(2026, 11, 1, 10)),
        ("2026-11-01 12:00", ms(2026, 11, 1, 12)),
        ("2026-11-01", ms(2026, 11, 1)),
        (" 2026-11-01 ", ms(2026, 11, 1)),
    ],
)
def test_times_are_relative_or_iso(text: str, expected: int):
    assert expected == read({"from": text}).start


def test_a_time_without_offset_is_local_to_the_viewer():
    view = read({"from": "2026-11-01", "to": "2026-11-01T12:00:00Z", "tz": "America/Los_Angeles"})
    assert (ms(2026, 11, 1, 7), ms(2026, 11, 1, 12)) == (view.start, view.end)


def test_a_local_day_has_the_length_that_its_zone_gives_it():
    for day, following, hours in (
        ("2026-10-25", "2026-10-26", 25),
        ("2026-03-29", "2026-03-30", 23),
    ):
        view = read({"from": day, "to": following, "tz": "Europe/Berlin"})
        assert hours * HOUR == view.end - view.start


def test_values_repeat_and_an_exclamation_mark_excludes():
    view = read(
        [("model", "a"), ("model", "b"), ("model", "a"), ("model", "!c"), ("mode", "ws_full")]
    )
    assert {"model": ("a", "b"), "mode": ("ws_full",)} == view.include
    assert {"model": ("c",)} == view.exclude


def test_a_backslash_takes_the_next_character_as_it_is():
    view = read([("session", "\\!x"), ("session", "\\\\y"), ("client", "!!z")])
    assert {"session": ("!x", "\\y")} == view.include
    assert {"client": ("!z",)} == view.exclude


def test_blank_values_are_as_good_as_none():
    assert read() == read({"model": "", "q": " ", "tz": "", "from": ""})


def test_the_callers_own_parameters_are_skipped():
    assert read() == read({"cursor": "abc"}, also=("cursor",))


@pytest.mark.parametrize(
    ("query", "name", "message"),
    [
        ({"modell": "a"}, "modell", "Did you mean model?"),
        ({"zzzz": "a"}, "zzzz", "Filters are from, to, tz"),
        ({"from": "yesterday"}, "from", "from is not a time: 'yesterday'. Use ISO 8601"),
        ({"from": "now+1h"}, "from", "is not a time"),
        ({"to": "2026-13-01"}, "to", "to is not a time"),
        ({"from": "now-999999999w"}, "from", "out of range"),
        ({"from": "0001-01-01", "tz": "Asia/Tokyo"}, "from", "out of range"),
        ({"from": "now", "to": "now"}, "from", "is not before"),
        ({"tz": "Mars/Olympus"}, "tz", "IANA"),
        ({"tz": "../../etc/passwd"}, "tz", "IANA"),
        ({"by": "ended"}, "by", "It is one of started, recorded."),
        ({"mode": "ws"}, "mode", "ws_incremental, ws_full, http_full, http_incremental, unknown"),
        ({"mode": "!ws"}, "mode", "mode cannot be 'ws'"),
        ({"eligible": "yes"}, "eligible", "It is one of true, false."),
        ({"status": "ok"}, "status", "completed"),
        ({"kind": "x"}, "kind", "generation, warmup, compaction"),
        ({"cache": "warm"}, "cache", "hit, partial, miss, unknown"),
        ({"model": "!"}, "model", "model excludes nothing"),
        ({"model": "m" * 513}, "model", "longer than 512"),
        ({"model": "a\x00"}, "model", "NUL"),
        ([("from", "now-1h"), ("from", "now-2h")], "from", "given 2 times"),
        ([("q", "a"), ("q", "b")], "q", "given 2 times"),
        ([("model", str(n)) for n in range(201)], "model", "more than 200"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(query, name: str, message: str):
    with pytest.raises(BadParameterError) as caught:
        read(query)
    assert name == caught.value.name
    assert message in str(caught.value)


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_every_value_that_is_offered_is_taken(name: str):
    for value in CLOSED[name]:
        assert (value,) == read({name: value}).include[name]


def test_words_that_imports_may_bring_are_taken():
    for name in sorted(set(DIMENSIONS) - set(CLOSED)):
        assert ("a word of its own",) == read({name: "a word of its own"}).include[name]


def test_a_relative_window_stays_relative_in_links():
    view = read({"from": "now-6h", "tz": "Europe/Berlin"})
    assert [("from", "now-6h"), ("tz", "Europe/Berlin")] == view.to_pairs()
    later = parse(view.to_pairs(), now=START + 3_600)
    assert view.start + HOUR == later.start


def test_a_link_can_fix_the_window():
    view = read({"from": "now-6h", "model": "a"}).window(START_MS, START_MS + 1)
    assert (
        "from=2027-01-15T08%3A00%3A00.000Z&to=2027-01-15T08%3A00%3A00.001Z&model=a"
        == view.to_query()
    )
    assert not view.follows_now


def test_narrowing_replaces_a_dimension_and_lifts_it_without_values():
    view = read([("model", "a"), ("model", "!b"), ("client", "c")])
    assert {"model": ("x",), "client": ("c",)} == view.narrow("model", "x").include
    assert {} == view.narrow("model", "x").exclude
    assert {"client": ("c",)} == view.narrow("model").include
    with pytest.raises(ValueError, match="colour"):
        view.narrow("colour", "red")


@given(filters(most=6))
def test_a_filter_written_into_a_link_is_read_back_the_same(view: Filter):
    view = view.window(view.start, view.end)
    assert view == read(view.to_pairs())


def test_the_zone_is_at_hand():
    assert "Europe/Berlin" == read({"tz": "Europe/Berlin"}).zone.key
