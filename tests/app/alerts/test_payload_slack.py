from dataclasses import replace

import pytest

from app.alerts.fitting import Room
from app.alerts.payload_slack import build, escape
from tests.support.alerts import make_rule
from tests.support.messages import BASE, make_details, make_message

ROOM = Room(1_000, 3_000)


def button(number, name, url):
    text = {"type": "plain_text", "text": name, "emoji": False}
    return {"type": "button", "text": text, "url": url, "action_id": f"open_{number}"}


def section(text):
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def test_the_body_of_a_firing_alert():
    said = (
        "Mismatch rate 30 % (30 of 100 eligible turns; at least 21.9 % is proven), "
        "threshold 20 %.\n"
        "Window: 2027-01-15 07:45:00 to 08:00:00 UTC, by time of recording.\n"
        "Firing since 2027-01-15 08:00:00 UTC."
    )
    context = {"type": "mrkdwn", "text": "Severity: warning", "verbatim": True}
    assert build(make_message(), ROOM) == {
        "text": f"Firing: Mismatches\n{said}",
        "blocks": [
            {
                "type": "header",
                "text": {"type": "plain_text", "text": "Firing: Mismatches", "emoji": False},
            },
            section(said),
            section(
                "Top causes:\n"
                "- An old tool result changed at /output/_meta. (28 turns)\n"
                "- The instructions changed. (1 turn)"
            ),
            {"type": "context", "elements": [context]},
            {
                "type": "actions",
                "elements": [
                    button(1, "Alert", f"{BASE}/alerts?rule=rule-1"),
                    button(2, "Rows", f"{BASE}/requests?reason=prefix_mismatch&by=recorded"),
                    button(
                        3,
                        "Rows as CSV",
                        f"{BASE}/api/requests.csv?reason=prefix_mismatch&by=recorded",
                    ),
                    button(4, "Silence it", f"{BASE}/alerts?silence=rule-1"),
                ],
            },
        ],
    }


def texts(value):
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "text" and isinstance(inner, str):
                yield inner
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def test_no_name_calls_a_channel_together():
    rule = make_rule(name="<!channel> & <@U123>", owner="<!here>", labels={"a": "<!everyone|x>"})
    body = build(make_message(rule=rule, labels={"model": "<!channel>"}), ROOM)
    found = list(texts(body))
    assert any("&lt;!channel&gt; &amp; &lt;@U123&gt;" in text for text in found)
    assert not [text for text in found if "<" in text or ">" in text]


@pytest.mark.parametrize("most", [1, 5, 40, 150, 3_000])
@pytest.mark.parametrize("text", ["<" * 5_000, "&x" * 2_000, "plain " * 1_000, "<", ""])
def test_an_escape_is_never_cut_in_the_middle(text, most):
    shown = escape(text, most)
    assert len(shown) <= most
    rest = shown.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert not set(rest) & set("&<>")


def test_what_is_escaped_stays_within_the_limits_of_slack():
    rule = make_rule(name="<" * 100, description="&" * 1_000, owner="<" * 100)
    cause = replace(make_details().top_causes[0], sentence=">" * 1_000)
    details = make_details(top_causes=(cause,) * 3)
    header, *sections = build(make_message(rule=rule, details=details), ROOM)["blocks"][:3]
    assert 100 < len(header["text"]["text"]) <= 150
    for section in sections:
        assert 2_900 < len(section["text"]["text"]) <= 3_000


def test_owner_and_labels_stand_in_the_context():
    rule = make_rule(owner="platform", severity="critical", labels={"team": "agents", "tier": "1"})
    body = build(make_message(rule=rule), ROOM)
    assert body["blocks"][-2]["elements"][0]["text"] == (
        "Severity: critical · Owner: platform · team=agents, tier=1"
    )


def test_a_message_with_nothing_to_say_has_a_section_all_the_same():
    body = build(make_message(reading=None, started_at=None, details=None), ROOM)
    assert body["blocks"][1] == section("Firing: Mismatches")
