"""The page without a browser; tests/browser/test_report.py opens it in one."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

from app.charts.registry import CHARTS
from app.reporting.figures import Read
from app.reporting.gather import gather
from app.reporting.page import cell, code, milliseconds, number, page
from tests.support.ledger import everything
from tests.support.reported import SILENT, judged, some_turns
from tests.support.rows import START_MS, unknown_usage

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
NOW = START_MS + 10**8


@pytest.fixture
def paged(holding):
    def made(*rows, read: Read | None = None) -> str:
        engine, view = holding(rows), everything()
        return page(engine, view, gather(engine, view, read or Read()), now=NOW)

    return made


def scripts(text: str) -> dict[str, str]:
    found = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    names = ("boot", "payloads", "plotly", "map", "page")
    assert len(names) == len(found)
    return {name: content for name, (_, content) in zip(names, found, strict=True)}


def markup(text: str) -> str:
    """What is neither script nor style."""
    return re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)


def test_the_page_asks_nobody_and_listens_nowhere_in_its_markup(paged):
    said = markup(paged(*some_turns()))
    assert [] == re.findall(r"\s(?:src|srcset|action)=|https?://|\son\w+=", said)
    assert ["data:,"] == re.findall(r"href=\"([^\"]*)\"", said)
    assert [] == re.findall(
        r"url\(|@import", re.findall(r"<style>(.*?)</style>", paged(), re.DOTALL)[0]
    )


def test_its_policy_lets_just_its_own_scripts_run(paged):
    text = paged(*some_turns())
    (policy,) = re.findall(r"content-security-policy\" content=\"([^\"]*)\"", text)
    allowed = re.findall(r"'sha256-([^']+)'", html.unescape(policy))
    found = scripts(text)
    del found["payloads"]
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in found.values()
    ]
    assert sorted(allowed) == sorted(digests)
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "\r" not in "".join(found.values())


def test_each_chart_has_its_sentence_and_its_table(paged):
    said = markup(paged(*some_turns()))
    assert list(CHARTS) == re.findall(r"data-slug=\"([\w-]+)\"", said)
    assert said.count('<table class="data">') == said.count('<div class="plot">') == len(CHARTS)
    assert "7 turns: 85.7\u202f% incremental." in said


def test_charts_hold_the_time_that_there_are_turns_of(paged):
    payloads = json.loads(scripts(paged(*some_turns()))["payloads"])
    assert list(CHARTS) == list(payloads)
    rows = payloads["tokens"]["table"]["rows"]
    assert 140_000 == sum(row[2] or 0 for row in rows)
    assert len(rows) < 101


def test_what_no_log_tells_is_said_to_be_not_recorded(paged):
    said = markup(paged(unknown_usage(**SILENT)))
    assert "Not recorded: nothing here tells how a request was sent." in said
    assert said.count("modes not recorded") == 2
    assert "usage not recorded" in said
    assert "0\u202f%" not in said


def test_charts_of_nothing_are_named_and_take_no_room(paged):
    said = markup(paged(unknown_usage(**SILENT)))
    assert ["modes"] == re.findall(r"data-slug=\"([\w-]+)\"", said)
    named = re.findall(r"<dt>([^<]*)</dt>\s*<dd class=\"muted\">", said)
    assert [entry.title for entry in CHARTS.values() if entry.slug != "modes"] == named


def test_an_empty_ledger_has_a_page_too(paged):
    said = markup(paged())
    assert len(CHARTS) == said.count('<dd class="muted">')
    assert "There is no request in this view" in said


def test_what_misses_cost_and_what_would_have_saved_them_is_told(paged):
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup(paged(*some_turns()))))
    assert "genai-prices" in said
    assert "All 10 000 100 % 3 $0.04" in said
    assert "Freezing _meta would have kept at most 1 of 1 break warm." in said
    assert "1 reset rewrote a history." in said


def test_requests_without_a_row_are_told(holding):
    engine, view = holding(some_turns()), everything()
    found = replace(gather(engine, view), rows=7)
    said = markup(page(engine, view, found, now=NOW))
    assert "Of 1 older request only sums are kept" in said


def test_one_is_one(paged):
    said = markup(paged(judged("hit", "proven", 0, 9), read=Read(1, ("csv",), 1, {"x": 1})))
    for words in ("1 file (csv)", "1 request of 1 session,", "1 record skipped", "1 file of other"):
        assert words in said


def test_names_of_logs_are_text_and_never_markup(paged):
    name = "</script><img src=x onerror=alert(1)>"
    rows = [
        judged("idle", "likely", 9, 0, session=name, mode=name, reason=name, model=name),
        judged(name, "proven", 0, 0),
    ]
    text = paged(*rows, read=Read(1, ("csv",), 0, {name: 1}, ((name, name),)))
    assert "<img" not in markup(text)
    assert "</script><img" not in text
    assert name in json.loads(scripts(text)["payloads"])["modes"]["summary"] + json.dumps(
        json.loads(scripts(text)["payloads"])["modes"], ensure_ascii=False
    )


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "tokens", "–"),
        (1_234_567, "tokens", "1\u202f234\u202f567"),
        (0.25, "ratio", "25\u202f%"),
        (True, "flag", "yes"),
        (False, "flag", "no"),
        (1.5, "count", "1.50"),
        (420.0, "ms", "420\u202fms"),
        ("2027-01-15T08:00:00.000Z", "time", "15 Jan 2027 17:00:00"),
        ("x", "text", "x"),
    ],
)
def test_cells_are_shown_by_their_unit(backend, value, unit, shown):
    assert shown == cell(value, unit, "Asia/Tokyo")


def test_numbers_and_times_are_shown_as_on_the_dashboard(backend):
    assert ["–", "0", "1\u202f000"] == [number(value) for value in (None, 0, 1_000)]
    assert ["–", "999\u202fms", "1.00\u202fs", "12.3\u202fs"] == [
        milliseconds(value) for value in (None, 999.4, 999.6, 12_345)
    ]


def test_words_in_backticks_are_of_a_program(backend):
    assert "Set <code>a</code>, <code>b&lt;</code>." == code("Set `a`, `b<`.")
    assert "a" == code("a")
    assert "5 o&#39;clock, ` alone" == code("5 o'clock, ` alone")
