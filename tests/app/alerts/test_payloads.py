import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.alerts.causes import TopCause
from app.alerts.fitting import MOST_BYTES
from app.alerts.message import Links
from app.alerts.payloads import KINDS, encode
from app.alerts.signals import Lack, Measure, Reading, Signal
from app.alerts.states import Cause, State, Told
from tests.support.alerts import make_rule
from tests.support.messages import BASE, make_details, make_message, make_resolved

NASTY = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="<>&\"'\\\x00\n\x1b\u202e😀模\ud83d", max_size=1_000),
    st.sampled_from(["😀" * 1_000, "\x01" * 1_000, '"\\' * 500, "<!channel>" * 100]),
)
"""Names as an import may bring them."""
NUMBERS = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, 1e308, -1e308, float("nan"), float("inf")])
)
TIMES = st.integers(0, 4_000_000_000_000)


@st.composite
def messages(draw):
    signal = draw(st.sampled_from(Signal))
    texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=100)
    long = st.sampled_from(["", "d" * 1_000, "😀" * 1_000])
    labels = draw(st.sampled_from([{}, {f"l{n:02}" + "x" * 61: "😀" * 200 for n in range(20)}]))
    rule = make_rule(
        name=draw(texts.filter(str.strip)),
        description=draw(long),
        owner=draw(texts),
        signal=signal,
        labels=labels,
        runbook_url=draw(st.sampled_from(["", "https://wiki.example/" + "x" * 970])),
    )
    causes = [
        TopCause(sentence=draw(NASTY), reason=draw(NASTY), fingerprint=draw(NASTY), turns=3)
        for _ in range(draw(st.integers(0, 3)))
    ]
    counts = st.integers(0, 10**15)
    measure = Measure(*(draw(counts) for _ in range(5)))
    reading = Reading(measure, draw(NUMBERS), draw(NUMBERS), draw(st.sampled_from([None, *Lack])))
    query = draw(st.sampled_from(["", "model=" + "%F0%9F%98%80" * 1_000]))
    return make_message(
        told=draw(st.sampled_from(Told)),
        before=draw(st.sampled_from(State)),
        now=draw(st.sampled_from(State)),
        rule=rule,
        labels={name: draw(NASTY) for name in draw(st.sets(st.sampled_from(["model", "client"])))},
        reading=draw(st.sampled_from([None, reading])),
        start=draw(TIMES),
        end=draw(TIMES),
        started_at=draw(st.none() | TIMES),
        ended_at=draw(st.none() | TIMES),
        peak=draw(NUMBERS),
        cause=draw(st.sampled_from([None, *Cause])),
        repeat=draw(st.integers(0, 1_000)),
        absence=draw(st.booleans()),
        details=make_details(
            top_causes=tuple(causes), sample_turn_ids=tuple(draw(NASTY) for _ in range(5))
        ),
        links=Links(*(f"{BASE}/{place}?{query}" for place in ("alerts", "requests", "csv", "s"))),
        test=draw(st.booleans()),
        at=draw(TIMES),
    )


def refuse(constant):
    pytest.fail(f"{constant} is no JSON")


@pytest.mark.parametrize("kind", KINDS)
@given(message=messages(), name=NASTY)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_the_body_is_json_below_its_limit(kind, message, name):
    body = encode(kind, message, name)
    assert len(body) < MOST_BYTES
    decoded = json.loads(body.decode("utf-8", "strict"), parse_constant=refuse)
    assert isinstance(decoded, dict)
    if kind == "slack":
        assert len(decoded["blocks"]) <= 50
        for block in decoded["blocks"]:
            limit = {"header": 150, "section": 3_000}.get(block["type"])
            assert limit is None or 0 < len(block["text"]["text"]) <= limit
        for button in decoded["blocks"][-1].get("elements", []):
            assert len(button.get("url", "")) <= 3_000
    if message.test:
        assert b"[TEST]" in body


@pytest.mark.parametrize("kind", KINDS)
def test_a_usual_message_is_cut_nowhere(kind):
    for message in (make_message(labels={"model": "gpt-6-sol"}), make_resolved()):
        assert "…" not in encode(kind, message, "ops").decode()


def test_a_long_name_is_cut_where_one_sees_it():
    message = make_message(labels={"model": "m" * 1_500})
    data = json.loads(encode("webhook", message, "ops"))["data"]
    assert data["group"]["model"] == "m" * 992 + " … (cut)"


def test_the_same_message_gives_the_same_bytes():
    assert encode("webhook", make_message(), "a") == encode("webhook", make_message(), "a")


def test_a_kind_that_does_not_exist_is_a_bug():
    with pytest.raises(ValueError, match="'carrier pigeon'"):
        encode("carrier pigeon", make_message(), "ops")
