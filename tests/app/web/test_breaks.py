import random
from decimal import Decimal

from app.analysis.waste import loss_of, usd
from app.demo.history import DAY, MISMATCHES, TRIED
from app.demo.history import HOUR as HOUR_S
from app.ledger.rows import iso, money, to_ms
from app.web.economics import sellers_of
from tests.support.rows import START_MS, make_row
from tests.support.sampled import NOW, fill

HOUR = 3_600_000
PARTED = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
LOST = {"mode": "http_full", "reason": "connection_lost", "fallback_reason": "closed"}
LOGGED = {
    "source": "import:codex", "mode": None, "reason": None, "eligible": False,
    "cache_verdict": "persistent", "missed_tokens": 9_000,
}  # fmt: skip


PLANTED = (
    ("prefix_mismatch", "has lost what it had at /output/_meta", "Metadata moves to the newest"),
    ("non_input_fields_changed", "tools changed", "A tool's definition is made anew"),
    ("connection_lost", "had been closed", "closed an idle connection"),
)
"""Of the demo: reason, part of the sentence, part of the cause; the costliest first."""


def rows():
    return [
        *(
            make_row(
                turn_id=f"parted-{number}",
                started_at=START_MS - number * HOUR - 1,
                session=f"s{number % 2}",
                client="codex",
                client_version="0.9",
                model="gpt-5.5",
                missed_tokens=1_000,
                **PARTED,
            )
            for number in range(3)
        ),
        make_row(started_at=START_MS - 2 * HOUR, **LOST),
        make_row(started_at=START_MS - 50 * HOUR, **LOST),
        make_row(started_at=START_MS - 5 * HOUR, **LOGGED),
        make_row(started_at=START_MS - 5 * HOUR),
    ]


def test_breaks_come_by_their_cause_the_costliest_first(site):
    site.write(rows())
    found = site.get("/api/breaks")
    assert ["verdict:persistent", "f1", "reason:connection_lost:closed"] == [
        each["id"] for each in found["groups"]
    ]
    assert (5, 3) == (found["turns"], found["count"])
    costs = [Decimal(each["cost_usd"] or 0) for each in found["groups"]]
    for given in ({}, {"state": "ongoing"}, {"limit": 1}):
        told = site.get("/api/breaks", **given)
        assert (5, 3 * 1_000 + 9_000) == (told["turns"], told["missed_tokens"])
        assert (sum(costs), 1) == (
            Decimal(told["cost_usd"]), told["turns_without_price"]
        )  # fmt: skip
    parted = found["groups"][1]
    assert sum(parted["counts"]) == parted["turns"] == 3
    assert len(parted["counts"]) == len(found["buckets"])
    wanted = {
        "by": "fingerprint",
        "state": "new",
        "decided": None,
        "sessions": 2,
        "missed_tokens": 3_000,
        "clients": [{"client": "codex", "version": "0.9", "turns": 3}],
        "models": [{"model": "gpt-5.5", "turns": 3}],
        "turns_without_price": 0,
        "example": "parted-0",
        "first_seen": iso(START_MS - 2 * HOUR - 1),
        "last_seen": iso(START_MS - 1),
    }
    assert wanted.items() <= parted.items()
    each = sum((loss_of(row, None, sellers_of(site.web)).cost for row in rows()[:3]), Decimal(0))
    assert money(usd(each)) == parted["cost_usd"] != "0"
    lost = found["groups"][2]
    assert (None, None, 1) == (
        lost["missed_tokens"], lost["cost_usd"], lost["turns_without_price"]
    )  # fmt: skip
    assert (1, 2, iso(START_MS - 50 * HOUR)) == (
        lost["turns"], lost["turns_ever"], lost["first_seen"]
    )  # fmt: skip
    assert "Look at what the agent sends" in found["groups"][0]["remedy"]


def test_groups_are_chosen_by_state_and_put_in_order(site):
    site.write(rows())
    assert ["reason:connection_lost:closed"] == [
        each["id"] for each in site.get("/api/breaks", state="ongoing")["groups"]
    ]
    recent = site.get("/api/breaks", sort="recent", limit=1)
    assert (["f1"], 3) == ([each["id"] for each in recent["groups"]], recent["count"])
    assert {"new": 2, "ongoing": 1}.items() <= recent["states"].items()
    for wrong in ({"sort": "name"}, {"state": "open"}, {"limit": "501"}):
        answer = site.client.get("/api/breaks", params=wrong)
        assert (422, "invalid_parameter") == (answer.status_code, answer.json()["error"]["code"])


def test_one_group_has_its_breaks_by_pages(site):
    site.write(rows())
    first = site.get("/api/breaks/f1", limit=2)
    assert ["parted-0", "parted-1"] == [row["turn_id"] for row in first["rows"]]
    rest = site.get("/api/breaks/f1", limit=2, cursor=first["next_cursor"])
    assert (["parted-2"], None) == ([row["turn_id"] for row in rest["rows"]], rest["next_cursor"])
    assert 3 == first["group"]["turns"] == sum(first["group"]["counts"])
    # None in the view: it is there all the same.
    empty = site.get("/api/breaks/reason:connection_lost:closed", **{"from": "now-5m"})
    assert ([], 0, 2) == (empty["rows"], empty["group"]["turns"], empty["group"]["turns_ever"])
    assert "closed" in empty["group"]["sentence"]
    assert 404 == site.client.get("/api/breaks/f2").status_code


def test_a_group_is_resolved_comes_back_is_muted_and_opened(site):
    site.write(rows())
    path, state = "/api/breaks/f1", lambda: site.get("/api/breaks/f1")["group"]["state"]
    at = iso(START_MS)
    assert {
        "id": "f1",
        "state": "resolved",
        "decided": {"state": "resolved", "at": at, "ends_at": None, "by": "operator"},
    } == site.ask("PATCH", path, {"state": "resolved"})
    assert state() == "resolved"
    site.clock.advance(60)
    site.write([make_row(started_at=START_MS + 1, **PARTED)])
    assert state() == "regressed"
    muted = site.ask("PATCH", path, {"state": "muted", "for": "2h"})
    assert iso(START_MS + 60_000 + 2 * HOUR) == muted["decided"]["ends_at"]
    assert state() == "muted"
    site.clock.advance(2 * 3_600)
    assert state() == "new"
    site.ask("PATCH", path, {"state": "muted"})
    assert state() == "muted"
    site.ask("PATCH", path, {"state": "open"})
    assert state() == "new"


def test_what_makes_no_sense_is_refused(site):
    site.write(rows())
    for body in (
        {"state": "gone"},
        {"state": "resolved", "for": "2h"},
        {"state": "muted", "ends_at": iso(START_MS - 1)},
        {"state": "muted", "until": "2h"},
        {},
    ):
        assert "bad_field" == site.ask("PATCH", "/api/breaks/f1", body, status=422)["error"]["code"]
    site.ask("PATCH", "/api/breaks/f2", {"state": "resolved"}, status=404)


def test_an_onset_is_told_with_what_was_new_then(site):
    changed_at = START_MS - 6 * HOUR
    found = []
    for number in range(240):
        at = START_MS - 24 * HOUR + number * 6 * 60_000
        new = at >= changed_at
        fault = PARTED if new and number % 2 else {}
        version = "0.141" if new else "0.140"
        found.append(
            make_row(started_at=at, session=f"s{number % 7}", client_version=version, **fault)
        )
    site.write(found)
    told = site.get("/api/breaks/f1")
    assert iso(changed_at) == told["onset"]["from"]
    assert told["onset"]["to"] is None
    (suspect,) = told["onset"]["suspects"]
    assert ("client_version", "0.141", 1.0, 0.0) == tuple(
        suspect[name] for name in ("field", "value", "share", "before")
    )
    assert sum(told["group"]["counts"]) == told["group"]["turns"] == suspect["breaks"] == 30
    since = site.get("/api/breaks/f1", **{"from": iso(changed_at)})["onset"]
    first = changed_at + 5 * 60_000  # its buckets are shorter
    assert (iso(first), 1.0) == (since["from"], since["suspects"][0]["share"])
    later = site.get("/api/breaks/f1", **{"from": iso(changed_at + 3 * HOUR)})
    assert (15, None) == (later["group"]["turns"], later["onset"])


def test_a_calm_ledger_shows_no_onset(site):
    """Twelve days of the same agents: each turn breaks with the same chance at any time."""
    randomly = random.Random(8)
    faults = (PARTED, LOST, PARTED | {"fingerprint": "f2"})
    site.write(
        [
            make_row(
                started_at=START_MS - 12 * 24 * HOUR + number * 6 * 60_000,
                session=f"s{number // 60}",
                **(randomly.choice(faults) if randomly.random() < 0.1 else {}),
            )
            for number in range(12 * 24 * 10)
        ]
    )
    whole = {"from": "now-12d"}
    found = site.get("/api/breaks", **whole)["groups"]
    assert 3 == len(found)
    assert all(group["turns"] > 60 for group in found)
    assert [None] * 3 == [
        site.get(f"/api/breaks/{group['id']}", **whole)["onset"] for group in found
    ]


def test_the_demo_has_its_planted_causes_first_and_tells_what_was_new(site):
    fill(site)
    groups = site.get("/api/breaks")["groups"]
    told = [(group["reason"], group["sentence"], group["cause"]) for group in groups]
    assert len(PLANTED) == len(told)
    for (reason, sentence, cause), given in zip(PLANTED, told, strict=True):
        assert reason == given[0]
        assert sentence in given[1]
        assert cause in given[2]
    parted, *others = [site.get(f"/api/breaks/{group['id']}") for group in groups]
    afternoon = NOW - NOW % DAY + MISMATCHES[0] * HOUR_S
    (start,) = [place for place, at in enumerate(parted["buckets"]) if at == iso(to_ms(afternoon))]
    assert 1 >= abs(start - parted["buckets"].index(parted["onset"]["from"]))
    suspect = parted["onset"]["suspects"][0]
    assert ("client_version", TRIED) == (suspect["field"], suspect["value"])
    assert suspect["before"] < 0.05
    assert suspect["share"] > 0.9
    assert [None, None] == [other["onset"] for other in others]
    calm = site.get(f"/api/breaks/{groups[0]['id']}", to=iso(to_ms(afternoon)))
    assert (True, None) == (calm["group"]["turns"] > 5, calm["onset"])

    # each is found as rows, all of it and nothing else
    for group in groups:
        assert group["turns"] == site.get("/api/requests", **{"break": group["id"]})["count"]


def test_what_another_has_decided_meanwhile_is_not_overruled(site):
    site.write(rows())
    path, muted = "/api/breaks/f1", {"state": "muted", "seen": None}
    first = site.ask("PATCH", path, {"state": "resolved", "seen": None})
    assert "conflict" == site.ask("PATCH", path, muted, status=409)["error"]["code"]
    assert "resolved" == site.get(path)["group"]["state"]
    muted["seen"] = first["decided"]["at"]
    assert "muted" == site.ask("PATCH", path, muted)["state"]


def test_the_sessions_with_most_of_a_group_are_named(site):
    site.write(rows())
    found = site.get("/api/breaks/f1")["by_session"]
    assert [("s0", 2, "parted-2"), ("s1", 1, "parted-1")] == [
        (each["session"], each["turns"], each["turn_id"]) for each in found
    ]
