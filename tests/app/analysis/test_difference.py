import pytest

from app.analysis.difference import Difference, differences
from tests.support.rows import START_MS, make_row

BEFORE = {"started_at": START_MS - 2_000, "ended_at": START_MS}
HOUR = 3_600_000


def told(before=None, **row):
    return differences(
        make_row(**(BEFORE | (before or {}))), make_row(**({"started_at": START_MS} | row))
    )


def sentences(about, before=None, **row):
    return [one.sentence for one in told(before, **row) if one.about == about]


def test_what_was_asked_for_otherwise_is_told_by_name():
    assert ["The model changed from a to b."] == sentences("fields", {"model": "a"}, model="b")
    digests = {"tools_digest": "1", "instructions_digest": "2"}
    assert ["The set of tools changed.", "The instructions changed."] == sentences(
        "fields", digests, tools_digest="3", instructions_digest="4"
    )
    assert ["Fields that Warmline saw change: tools, text."] == sentences(
        "fields", changed_fields="tools,text"
    )


def test_of_what_one_side_does_not_know_nothing_is_said():
    known = {"reasoning_effort": "high", "tools_digest": "1", "connection": "c1", "chain": "a"}
    assert [] == [one for one in told(known) if one.about in ("fields", "connection")]
    assert [] == sentences("tokens", input_tokens=None, cached_tokens=None)


def test_another_connection_mode_chain_or_epoch_is_told():
    assert [
        "It went over another connection.",
        "The mode went from ws_incremental to http_full.",
        "It began another chain.",
    ] == sentences(
        "connection", {"connection": "1", "chain": "a"}, connection="2", chain="b", mode="http_full"
    )
    assert ["The epoch was reset: summarize."] == sentences("epoch", epoch_reset_reason="summarize")


@pytest.mark.parametrize(
    ("after", "sentence", "notable"),
    [
        (-1, "It began before the other had ended.", False),
        (340, "It began 340 ms after the other had ended, within the 30 min that a cache lives.", False),
        (HOUR, "It began 1 h after the other had ended; a cache is sure to live 30 min only.", True),
        (
            25 * HOUR + 185_000,
            "It began 25 h 3 min after the other had ended; by then a cache is gone, 24 h at the latest.",
            True,
        ),
    ],
)  # fmt: skip
def test_the_pause_is_held_against_the_life_of_the_cache(after, sentence, notable):
    [found] = [one for one in told(started_at=START_MS + after) if one.about == "gap"]
    assert Difference("gap", sentence, notable) == found


def test_amounts_are_compared_and_a_loss_is_notable():
    found = told(
        {"items_total": 4}, items_total=3, input_tokens=2_000, cached_tokens=0, missed_tokens=900
    )
    assert [
        Difference("items", "Its full input has 3 items, 1 fewer.", notable=True),
        Difference("tokens", "Input went from 1,000 to 2,000 tokens."),
        Difference("tokens", "Cached were 90 % of the input before and 0 % now.", notable=True),
        Difference(
            "tokens",
            "900 tokens could have been read from the cache and were not.",
            notable=True,
        ),
    ] == [one for one in found if one.about in ("items", "tokens")]
    assert ["Its full input has 1 item, as many."] == sentences(
        "items", {"items_total": 1}, items_total=1
    )
