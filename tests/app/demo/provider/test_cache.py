"""The prompt cache: exact prefixes, in blocks, for a while, per key and customer."""

import pytest

from app.demo.provider.cache import BLOCK, MINIMUM, PromptCache, lifetime, tokens_of
from tests.support.provider import AUTH, Now, answer, make_core, user

LONG = "word " * 2000
"""About 2,500 tokens."""


def cached(response):
    return response["usage"]["input_tokens_details"]["cached_tokens"]


def connection_of(now=None, **options):
    return make_core(now=now or Now(), **options).open_connection(AUTH)


def test_a_first_request_hits_nothing():
    assert cached(answer(connection_of(), [user(LONG)])) == 0


def test_the_same_prefix_is_read_from_the_cache_in_whole_blocks():
    connection = connection_of()
    first = answer(connection, [user(LONG)])
    again = answer(connection, [user(LONG), user("more")])
    assert cached(again) == first["usage"]["input_tokens"] // BLOCK * BLOCK
    assert cached(again) % 128 == 0


def test_a_prefix_below_the_minimum_is_not_cached():
    connection = connection_of()
    short = "x" * ((MINIMUM - BLOCK) * 4)
    answer(connection, [user(short)])
    assert cached(answer(connection, [user(short)])) == 0


def test_two_long_prompts_that_share_less_than_the_minimum_share_nothing():
    connection = connection_of()
    shared = "x" * ((MINIMUM - BLOCK) * 4)
    answer(connection, [user(shared), user("a" * 8000)])
    assert cached(answer(connection, [user(shared), user("b" * 8000)])) == 0


def test_an_edit_loses_what_comes_after_it():
    connection = connection_of()
    answer(connection, [user(LONG), user("a" * 8000)])
    after = answer(connection, [user(LONG), user("b" + "a" * 7999)])
    assert 2304 <= cached(after) <= tokens_of(len(LONG) + 400)


@pytest.mark.parametrize(
    "change",
    [
        {"instructions": "other"},
        {"tools": [{"type": "function", "name": "f"}]},
        {"model": "gpt-5.4"},
        {"reasoning": {"effort": "high"}},
        {"parallel_tool_calls": False},
        {"text": {"verbosity": "low"}},
        {"prompt_cache_key": "k2"},
        {"service_tier": "priority"},
    ],
)
def test_what_stands_before_the_items_breaks_the_prefix(change):
    connection = connection_of()
    answer(connection, [user(LONG)], prompt_cache_key="k1")
    assert cached(answer(connection, [user(LONG)], **{"prompt_cache_key": "k1", **change})) == 0


def test_tools_in_another_order_break_the_prefix():
    connection = connection_of()
    tools = [{"type": "function", "name": name} for name in ("f", "g")]
    answer(connection, [user(LONG)], tools=tools)
    assert cached(answer(connection, [user(LONG)], tools=tools)) > 0
    assert cached(answer(connection, [user(LONG)], tools=tools[::-1])) == 0


def test_ids_and_statuses_are_not_part_of_the_prefix():
    connection = connection_of()
    answer(connection, [user(LONG, id="msg_1")])
    assert cached(answer(connection, [user(LONG, id="msg_2", status="completed")])) > 0


def test_another_customer_has_another_cache():
    core = make_core()
    answer(core.open_connection(AUTH), [user(LONG)])
    other = core.open_connection({"authorization": "Bearer sk-other"})
    assert cached(answer(other, [user(LONG)])) == 0
    assert cached(answer(core.open_connection(AUTH), [user(LONG)])) > 0


def test_a_continuation_is_cached_like_the_whole_transcript():
    connection = connection_of()
    first = answer(connection, [user(LONG)])
    second = answer(connection, [user("more")], previous_response_id=first["id"])
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    assert cached(second) == first["usage"]["input_tokens"] // BLOCK * BLOCK


def test_entries_expire_after_their_last_use():
    now = Now()
    connection = connection_of(now)
    answer(connection, [user(LONG)])
    now.advance(599)
    assert cached(answer(connection, [user(LONG)])) > 0
    now.advance(599)
    assert cached(answer(connection, [user(LONG)])) > 0
    now.advance(600)
    assert cached(answer(connection, [user(LONG)])) == 0


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"model": "gpt-5.5"}, 600),
        ({"model": "gpt-5.5", "prompt_cache_retention": "24h"}, 86400),
        ({"model": "gpt-5.6-sol"}, 1800),
        ({"model": "gpt-6-sol", "prompt_cache_options": {"ttl": "12h"}}, 43200),
    ],
)
def test_the_lifetime_depends_on_model_and_options(body, seconds):
    assert lifetime(body) == seconds


def test_beyond_its_rate_a_key_overflows_to_a_cold_machine():
    now = Now()
    core = make_core(now=now, cache=PromptCache(overflow_rpm=2))
    connection = core.open_connection(AUTH)
    hits = [cached(answer(connection, [user(LONG)])) > 0 for _ in range(4)]
    assert hits == [False, True, False, True]
    now.advance(60)
    assert cached(answer(connection, [user(LONG)])) > 0


def test_the_oldest_entries_go_when_the_cache_is_full():
    core = make_core(cache=PromptCache(limit=30))
    connection = core.open_connection(AUTH)
    answer(connection, [user(LONG)])
    answer(connection, [user("other " * 2500)])
    assert cached(answer(connection, [user(LONG)])) == 0


def test_a_cleared_cache_is_cold():
    core = make_core()
    connection = core.open_connection(AUTH)
    answer(connection, [user(LONG)])
    core.cache.clear()
    assert cached(answer(connection, [user(LONG)])) == 0


def test_a_compaction_replaces_what_came_before_it_in_its_chain():
    connection = connection_of()
    wish = [{"type": "compaction", "compact_threshold": 1000}]
    first = answer(connection, [user(LONG)], context_management=wish)
    small = answer(connection, [user("a")], previous_response_id=first["id"])
    assert first["usage"]["input_tokens"] > 2000
    assert small["usage"]["input_tokens"] < 200


def test_a_compaction_that_a_client_gives_back_replaces_nothing():
    connection = connection_of()
    wish = [{"type": "compaction", "compact_threshold": 1000}]
    first = answer(connection, [user(LONG)], context_management=wish)
    replay = [user(LONG), first["output"][0], user("a")]
    assert answer(connection, replay)["usage"]["input_tokens"] > 2000
