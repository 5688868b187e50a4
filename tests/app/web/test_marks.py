import json

from sqlalchemy import insert

from app.alerts import event_store, tables
from app.ledger.filters import Filter
from app.web.marks import alert_marks
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
VIEW = Filter(start=START_MS - HOUR, end=START_MS)


def happened(site, *changes):
    """Transitions: minutes before the end, before, after, labels."""
    with site.engine.begin() as connection:
        for minutes, before, after, labels in changes:
            values = {
                "rule_id": "r", "rule_name": "Mismatches", "group_key": json.dumps(labels),
                "at": START_MS - minutes * 60_000, "before": before, "after": after,
                "cause": "held", "reading": None,
            }  # fmt: skip
            connection.execute(insert(tables.events), values)


def test_alerts_are_marked_where_they_fire_and_where_they_end(site):
    happened(
        site,
        (90, "pending", "firing", {}),
        (50, "firing", "recovering", {}),
        (40, "recovering", "inactive", {}),
        (30, "pending", "firing", {}),
        (29, "firing", "error", {}),
        (28, "error", "firing", {}),
        (20, "firing", "paused", {}),
        (10, "pending", "firing", {"model": "gpt-5.6"}),
    )
    words = [(mark.word, (START_MS - mark.at) // 60_000) for mark in alert_marks(site.engine, VIEW)]
    assert [("resolved", 40), ("fired", 30), ("ended", 20), ("fired", 10)] == words
    other = VIEW.narrow("model", "gpt-5.6-mini")
    assert 3 == len(alert_marks(site.engine, other))
    assert 4 == len(alert_marks(site.engine, VIEW.narrow("model", "gpt-5.6")))
    assert event_store.turnings(site.engine, VIEW.end, VIEW.end + HOUR) == []


def test_a_chart_of_the_api_has_them(site):
    site.write([make_row(started_at=START_MS - HOUR)])
    happened(site, (30, "pending", "firing", {}))
    chart = site.get("/api/charts/modes", **{"from": "now-2h"})
    assert "alert_fired" in [shape["name"] for shape in chart["figure"]["layout"]["shapes"]]
    assert ["fired: Mismatches"] == [row[-1] for row in chart["table"]["rows"] if row[-1]]
