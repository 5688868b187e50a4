"""What the provider says of its own cache when it is asked to compare."""

import pytest

from app.demo.provider.cache import MINIMUM
from tests.support.provider import AUTH, Now, answer, events, make_core, user

LONG = "x" * 8_000
NEW = "gpt-5.6-sol"


def ask(connection, given, compared, **fields):
    options = {"comparison_response_id": compared}
    asked = answer(connection, given, prompt_cache_options=options, **{"model": NEW, **fields})
    return asked["prompt_cache_diagnostics"]


def first(now=None, **fields):
    core = make_core(now=now or Now())
    connection = core.open_connection(AUTH)
    return connection, answer(connection, [user(LONG)], **{"model": NEW, **fields})["id"]


def test_whoever_repeats_all_of_it_in_time_has_hit_the_cache():
    connection, before = first()
    assert {"type": "cache_hit"} == ask(connection, [user(LONG), user("more")], before)


def test_nothing_is_said_where_nothing_was_asked():
    connection, _ = first()
    assert "prompt_cache_diagnostics" not in answer(connection, [user(LONG)], model=NEW)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model": "gpt-6-sol"}, "model_changed"),
        ({"prompt_cache_key": "other"}, "prompt_cache_key_changed"),
        ({"service_tier": "flex"}, "service_tier_changed"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools_changed"),
        ({"instructions": "other"}, "instructions_changed"),
        ({"reasoning": {"effort": "high"}}, "reasoning_effort_changed"),
    ],
)
def test_a_changed_setting_is_the_reason_of_a_miss(fields, reason):
    connection, before = first()
    found = ask(connection, [user(LONG)], before, **fields)
    assert ("cache_miss", reason, 0) == (
        found["type"],
        found["reason"],
        found["comparison_reusable_tokens"],
    )
    assert found["cache_missed_tokens"] >= MINIMUM


def test_of_a_changed_input_so_much_could_have_been_read_as_is_the_same():
    connection, before = first()
    found = ask(connection, [user("x" * 6_000 + "y" + "x" * 2_000)], before)
    assert ("cache_miss", "input_changed") == (found["type"], found["reason"])
    assert found["comparison_reusable_tokens"] in range(MINIMUM, 1_536)
    assert found["cache_missed_tokens"] == 1_920 - found["comparison_reusable_tokens"]


def test_what_was_the_same_and_is_gone_has_expired():
    now = Now()
    connection, before = first(now)
    now.advance(31 * 60)
    found = ask(connection, [user(LONG), user("more")], before)
    assert ("cache_expired", 1_920, 1_920) == (
        found["reason"],
        found["cache_missed_tokens"],
        found["comparison_reusable_tokens"],
    )


def test_anothers_response_and_an_unknown_one_are_not_found():
    connection, before = first()
    other = connection.core.open_connection({"Authorization": "Bearer sk-other"})
    gone = {"type": "comparison_response_not_found"}
    assert gone == ask(other, [user(LONG)], before)
    assert gone == ask(connection, [user(LONG)], "resp_unknown")


def test_too_short_a_prompt_and_an_older_model_cannot_be_told_of():
    connection, _ = first()
    short = answer(connection, [user("a")], model=NEW)["id"]
    assert {"type": "unavailable"} == ask(connection, [user("a")], short)
    connection, before = first(model="gpt-5.5")
    assert {"type": "unavailable"} == ask(connection, [user(LONG)], before, model="gpt-5.5")


def test_an_id_that_is_no_text_is_refused():
    connection, _ = first()
    last = events(connection, prompt_cache_options={"comparison_response_id": 1}, model=NEW)[-1]
    assert "prompt_cache_options.comparison_response_id" == last["error"]["param"]


@pytest.mark.parametrize(
    ("flavour", "model", "refused"),
    [
        ("openai", "gpt-5.5", False),
        ("azure", "gpt-5.5", True),
        ("azure", NEW, False),
        ("codex", NEW, True),
    ],
)
def test_azure_refuses_the_options_for_older_models_and_the_codex_backend_for_all(
    flavour, model, refused
):
    connection = make_core(flavour).open_connection(AUTH)
    last = events(connection, model=model, prompt_cache_options={})[-1]
    assert refused == (last["type"] == "error")
    assert not refused or "prompt_cache_options" in last["error"]["message"]
