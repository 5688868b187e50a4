import json

import pytest

from app.ledger import retention
from app.ledger.rows import iso
from app.web import sessions
from tests.support.browser import history
from tests.support.rows import START_MS, make_row
from tests.support.site import open_site

HOUR = 3_600_000
MINUTE = 60_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("ledger"))
    agents = [
        make_row(
            started_at=START_MS - number * MINUTE,
            session=f"agent-{number % 3}",
            root_session="agent-0",
            mode=("ws_full", "ws_incremental")[number % 2],
            reason=("prefix_mismatch", "ok")[number % 2],
            missed_tokens=(700, None)[number % 2],
        )
        for number in range(1, 13)
    ]
    opened.write([*history(START_MS), *agents])
    yield opened
    opened.close()


def all_pages(site, **view):
    rows, cursor = [], {}
    while True:
        page = site.get("/api/sessions", limit=7, **view, **cursor)
        rows += page["sessions"]
        if page["next_cursor"] is None:
            return page, rows
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize(
    "view",
    [
        {},
        {"from": "now-5h", "to": "now-37m", "sort": "missed"},
        {"model": "gpt-5.6", "sort": "mismatches"},
        {"mode": "!ws_incremental", "sort": "turns"},
        {"root": "agent-0", "sort": "cost"},
    ],
)
def test_sessions_add_up_to_the_summary_of_the_same_filter(filled, view):
    page, rows = all_pages(filled, **view)
    filters = {name: value for name, value in view.items() if name != "sort"}
    summary = filled.get("/api/summary", **filters)
    assert summary["turns"]["sessions"] == page["sessions_in_view"]
    assert page["count"] == len({row["session_key"] for row in rows}) == len(rows)
    figures = [row["figures"] for row in rows]
    assert summary["turns"]["total"] == sum(one["turns"] for one in figures)
    for name in ("generation", "known", "incremental", "eligible", "breaks", "mismatches"):
        whole = summary["turns" if name == "generation" else "continuation"][name]
        assert whole == sum(one["continuation"][name] for one in figures), name
    for name in ("input", "cached", "non_cached", "output", "rows_with_usage"):
        assert (summary["tokens"][name] or 0) == sum(one["tokens"][name] or 0 for one in figures)


def test_a_root_has_its_sub_agents_figures_and_its_own_strip(filled):
    _, rows = all_pages(filled)
    [root] = [row for row in rows if row["sub_agents"]]
    assert ("key-agent-0", "agent-0", 2) == (root["session_key"], root["root"], root["sub_agents"])
    assert (12, 4_200) == (root["figures"]["turns"], root["figures"]["missed_tokens"])
    assert {"turns": "FiFi", "left_out": 0, "of_root": True, "runs": 2} == {
        key: root["strip"][key] for key in ("turns", "left_out", "of_root", "runs")
    }


def test_a_session_of_which_only_sums_are_kept_is_listed_without_a_strip(site):
    site.write([make_row(started_at=START_MS - 50 * 24 * HOUR)])
    retention.prune(site.engine, START_MS, row_days=40, rollup_days=90)
    [row] = site.get("/api/sessions", **{"from": "now-60d"})["sessions"]
    assert ("session-a", 1, None, "") == (
        row["session"], row["figures"]["turns"], row["model"], row["strip"]["turns"]
    )  # fmt: skip


def test_an_idle_session_is_listed_with_nothing_and_changes_no_sum(site):
    rows = [
        make_row(started_at=START_MS - hours * HOUR, session=session, tenant="t", model="m")
        for session, hours in (("idle", 9), ("at-work", 5), ("idle", 1))
    ]
    site.write(rows)
    view = {"from": "now-8h", "to": "now-2h"}
    page = site.get("/api/sessions", **view)
    assert (2, 1, 1) == (page["count"], page["sessions_in_view"], page["idle"])
    assert 1 == site.get("/api/summary", **view)["turns"]["sessions"]
    work, idle = page["sessions"]
    assert ("at-work", None) == (work["session"], work["idle"])
    assert ("idle", "t", "m", "", 0, None) == (
        idle["session"], idle["tenant"], idle["model"], idle["strip"]["turns"],
        idle["figures"]["turns"], idle["figures"]["tokens"]["input"],
    )  # fmt: skip
    ends = {"before": iso(rows[0].started_at), "after": iso(rows[2].started_at)}
    assert ends == idle["idle"]


def test_a_session_says_what_the_summary_says_of_it(filled):
    key = "key-flaky-tests"
    found = filled.get(f"/api/sessions/{key}")
    summary = filled.get("/api/summary", session=key)
    figures = found["figures"]
    assert summary["turns"]["total"] == figures["turns"]
    rates = ("incremental_rate", "mismatch_rate", "break_rate")
    assert [summary["continuation"][name] for name in rates] == [
        figures["continuation"][name] for name in rates
    ]
    assert summary["continuation"]["incremental_rate"] == found["residency"]["turns"]["share"]
    assert summary["cost"]["cost_usd"] == figures["cost_usd"]
    assert summary["tokens"].items() >= figures["tokens"].items()
    assert not found["residency"]["cut"]


def test_a_session_names_its_root_and_its_sub_agents(filled):
    root = filled.get("/api/sessions/key-agent-0")["session"]
    assert (None, ["agent-1", "agent-2"]) == (
        root["root"], sorted(one["session"] for one in root["sub_agents"])
    )  # fmt: skip
    agent = filled.get("/api/sessions/key-agent-1")["session"]
    assert {"session_key": "key-agent-0", "session": "agent-0"} == agent["root"]


def test_lanes_come_by_pages_and_small(filled, monkeypatch):
    key = "key-flaky-tests"
    whole = filled.get(f"/api/sessions/{key}/turns")
    assert whole["next_cursor"] is None
    assert len(whole["turns"]) == filled.get(f"/api/sessions/{key}")["figures"]["turns"]
    each = len(json.dumps(whole, separators=(",", ":"))) / len(whole["turns"])
    assert each * sessions.LANES < 200_000
    monkeypatch.setattr(sessions, "LANES", 200)
    last = filled.get(f"/api/sessions/{key}/turns")
    first = filled.get(f"/api/sessions/{key}/turns", cursor=last["next_cursor"])
    turns = [row[0] for page in (first, last) for row in page["turns"]]
    assert [row[0] for row in whole["turns"]] == turns
    gap = whole["columns"].index("gap")
    assert whole["turns"][-200][gap] == last["turns"][0][gap] is not None


def test_a_turn_comes_with_the_one_it_goes_on_from_and_what_differs(site):
    before = make_row(turn_id="t1", started_at=START_MS - HOUR, response_id="r1", model="a")
    row = make_row(
        turn_id="t2", started_at=START_MS - 9, model="b", mode="http_full",
        reason="non_input_fields_changed", changed_fields="model",
    )  # fmt: skip
    site.write([before, row])
    path = f"/api/sessions/{row.session_key}/turns"
    found = site.get(f"{path}/t2")
    assert ("t2", "t1", False) == (
        found["row"]["turn_id"], found["before"]["turn_id"], found["named"]
    )  # fmt: skip
    assert {"about": "fields", "sentence": "The model changed from a to b.", "notable": True} in (
        found["differences"]
    )
    assert (None, []) == ((first := site.get(f"{path}/t1"))["before"], first["differences"])


@pytest.mark.parametrize(
    "path", ["/api/sessions/nobody", "/api/sessions/nobody/turns/t", "/api/sessions?sort=name"]
)
def test_what_is_not_there_is_said(site, path):
    status = 422 if "sort" in path else 404
    site.ask("GET", path, status=status)
