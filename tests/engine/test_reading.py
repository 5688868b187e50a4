"""What is read by the help of what was read lately is what is there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import items as rules
from engine.held import HeldItem
from engine.reading import LatelyRead
from tests.engine.test_held import ITEMS, TWICE, spelled
from tests.support.transcripts import raw


def test_what_was_read_lately_is_not_read_again_and_not_kept_for_long(monkeypatch):
    parse, read = rules.parse, []
    monkeypatch.setattr(rules, "parse", lambda raw: read.append(bytes(raw)) or parse(raw))
    reader = LatelyRead()
    texts = [Raw(b"[%d]" % n) for n in range(9)]
    assert [reader(text) for text in texts[:8]] == [reader(text) for text in texts[:8]]
    assert [[rules.Number("8")], [rules.Number("0")]] == [reader(texts[8]), reader(texts[0])]
    assert [*map(bytes, texts), b"[0]"] == read
    for _ in range(2):
        with pytest.raises(rules.AmbiguousJSON):
            reader(TWICE)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_reader_that_knows_its_values_tells_the_same_differences(data):
    pairs, reader = list(data.draw(ITEMS)), LatelyRead()
    texts = [raw(data.draw(spelled(pairs))) for _ in range(4)]
    for held, now in data.draw(st.lists(st.tuples(*[st.sampled_from(texts)] * 2), max_size=8)):
        item = HeldItem(held, received=data.draw(st.booleans()))
        assert item.difference(now, (), reader) == item.difference(now)
