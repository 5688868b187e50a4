import json
from typing import Any

from app.importers.lingtai_events import Events
from tests.support.importing import lines_of


def of(*events: dict[str, Any]) -> Events:
    return Events(lines_of(b"".join(json.dumps(event).encode() + b"\n" for event in events)))


def test_calls_have_what_the_provider_took_and_whether_their_figures_are_estimates():
    events = of(
        {"type": "llm_call", "api_call_id": "a"},
        {"type": "llm_response", "api_call_id": "a", "provider_wait_ms": 812.5, "estimated": False},
        {"type": "llm_response", "api_call_id": "b", "estimated": True},
        {"type": "llm_response", "provider_wait_ms": 5},
        {"type": "text_input", "api_call_id": "c", "note": "llm_response"},
    )
    assert {"a": 812.5} == events.durations
    assert {"b"} == events.estimated


def test_a_rebuild_belongs_to_the_first_call_after_it_and_molting_says_more_than_refreshing():
    events = of(
        {"type": "refresh_complete", "ts": 30},
        {"type": "psyche_molt", "ts": 10.5},
        {"type": "refresh_complete", "ts": 12},
        {"type": "psyche_molt", "ts": "soon"},
    )
    told = [events.rebuilt(at) for at in (10_000, 13_000, 29_999, 30_000, 31_000)]
    assert [None, "molt", None, "refresh", None] == told


def test_no_file_is_not_an_empty_answer_and_a_torn_line_is_passed_over():
    assert not Events([]).there
    events = Events(lines_of(b'{"type":"llm_response","api_call_id":"a"\nx\n'))
    assert events.there
    assert {} == events.durations
