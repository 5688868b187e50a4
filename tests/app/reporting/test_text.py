"""What a screen of 80 by 24 shows."""

from dataclasses import replace
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from app.analysis.catalogue import CHANGES
from app.analysis.causes import Cause
from app.analysis.remedies import Policy, Remedies, Remedy, Saved
from app.analysis.waste import Waste
from app.analysis.witnesses import Layer
from app.reporting.figures import Figures, Read, Session
from app.reporting.text import HEIGHT, WIDTH, text
from tests.support.reported import SILENT, judged, some_turns
from tests.support.rows import make_row, unknown_usage

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
UTC = ZoneInfo("UTC")


@pytest.fixture
def figures(figures_of) -> Figures:
    return figures_of(*some_turns())


def line(figures: Figures, label: str) -> str:
    (found,) = [one for one in text(figures, UTC) if one.startswith(label)]
    return found.removeprefix(label).strip()


def test_the_head_tells_what_was_read_and_from_when(figures):
    read = Read(2, ("csv", "jsonl"), 1, {"x is missing": 3, "y": 1}, (("a.csv", "It is torn."),))
    head = text(replace(figures, read=read, first_at=0, last_at=90_000_000), ZoneInfo("Asia/Tokyo"))
    assert [
        "Warmline report: 2 files (csv, jsonl), 8 requests of 2 sessions",
        "1970-01-01 09:00 to 1970-01-02 10:00, Asia/Tokyo",
        "Not read whole: a.csv. It is torn.",
        "1 file of other kinds passed over. Skipped 4 records: x is missing (3), y (1).",
    ] == head[:4]


def test_a_ledger_is_called_one(figures):
    assert "Warmline report: the ledger, 8 requests of 2 sessions" == text(figures, UTC)[0]


def test_requests_without_a_row_are_told(figures):
    head = text(replace(figures, rows=6), UTC)
    assert "Of 2 older requests only sums are kept: they are in no verdict." == head[2]


def test_the_figures_have_a_line_each(figures):
    assert "140,000 tokens: 35,000 cached (25 %), 105,000 not" == line(figures, "Input")
    assert "ws_incremental 85.7 %, ws_full 14.3 %" == line(figures, "Modes")
    assert "ok 85.7 %, prefix_mismatch 14.3 %" == line(figures, "Reasons")
    assert "14.3 %: 1 of 7 turns that could have been continued" == line(figures, "Mismatches")
    assert line(figures, "First token").endswith("(7 turns)")
    assert "25 %: 10,000 of 40,000 tokens to be read again" == line(figures, "Missed")


def test_whose_doing_the_misses_were_is_told_where_any_is_known(figures):
    assert line(figures, "Whose") == "the client's 30 %, the provider's 70 %"
    told = {Layer.PROVIDER: 9_000, Layer.BETWEEN: 1_000}
    assert line(replace(figures, layers=told), "Whose") == (
        "the provider's 90 %, something between 10 %"
    )
    for none in ({}, {Layer.UNKNOWN: 10_000}):
        assert not any(one.startswith("Whose") for one in text(replace(figures, layers=none), UTC))


def test_each_cause_has_its_tokens_share_turns_grade_and_sentence(figures):
    shown = text(figures, UTC)
    at = shown.index("  missed  share  turns  how sure  why")
    assert [
        "  7.00 k   70 %      1  possible   A part lost, by routing, eviction or an edit.",
        "  2.00 k   20 %      1  proven     Metadata moves to the newest result, and the",
        "                                  older ones lose or change theirs.",
        "  1.00 k   10 %      1  likely     The cache ran out in the pause before.",
    ] == shown[at + 1 : at + 5]


def test_what_the_misses_cost_is_told_with_what_nobody_knows(figures):
    """10,000 tokens of gpt-5.6-sol: 3,600 nano-dollars more each than when read."""
    assert "about $0.04 at list prices" == line(figures, "Cost")
    without = replace(figures.losses, turns=10, timed=2, ms=4_000, ms_low=-900, ms_high=9_900)
    assert "about $0.04 at list prices (7 turns without); 4.0 s of waiting" == line(
        replace(figures, losses=without), "Cost"
    )
    assert "no price is known" == line(replace(figures, losses=Waste(3)), "Cost")
    with_room = replace(without, priced=10)
    assert "about $0.04 at list prices; 4.0 s of waiting (-900 ms to 9.9 s)" == line(
        replace(figures, losses=with_room), "Cost"
    )


def test_the_remedy_that_saves_most_is_told(figures_of):
    moved = some_turns()[5]
    assert "Freezing `_meta` would have kept at most 1 of 1 break warm." == line(
        figures_of(moved), "Saved by"
    )


def test_the_worst_sessions_and_what_is_no_loss_are_told(figures):
    assert "8.00 k in 2 of 2 turns  session-b, short once" == line(figures, "Worst")
    assert "1 first turn, 1 history condensed, 1 read again, 2 others" == line(figures, "No loss")


def test_no_number_is_cut(figures_of):
    rows = [make_row(input_tokens=2**31 - 1, cached_tokens=2**30) for _ in range(20)]
    assert "42.9 G tokens: 21.5 G cached (50 %), 21.5 G not" == line(figures_of(*rows), "Input")
    words = [f"a-word-of-some-length-{number}" for number in range(9)]
    said = line(figures_of(*(make_row(reason=word) for word in words)), "Reasons")
    assert "a-word-of-some-length-0 11.1 %, a-word-of-some-length-1 11.1 %, …" == said


def test_what_no_log_tells_is_not_recorded(figures_of):
    found = figures_of(unknown_usage(**SILENT))
    assert "not recorded" == line(found, "Input")
    assert "not recorded, and no reasons either" == line(found, "Modes")
    assert "not recorded" == line(found, "First token")
    assert "no turn had something to read again" == line(found, "Missed")
    assert "1 not judged" == line(found, "No loss")
    assert [] == [one for one in text(found, UTC) if one.startswith(("Mismatches", "Worst"))]


def test_where_some_turns_tell_it_the_others_are_unknown(figures_of):
    found = figures_of(make_row(), make_row(reason=None), unknown_usage(**SILENT))
    assert "ws_incremental 66.7 %, unknown 33.3 %" == line(found, "Modes")
    assert "ok 33.3 %, unknown 66.7 %" == line(found, "Reasons")
    assert "             usage of 1 turn unknown" in text(found, UTC)


def test_of_an_empty_view_nothing_is_said_to_be_unknown(figures_of):
    assert [
        "Warmline report: the ledger, 0 requests of 0 sessions",
        "",
        "There is no request in this view: look at --from, --to and --where.",
    ] == text(figures_of(), UTC)


LONG = "word " * 60
LONGEST = max(CHANGES, key=lambda name: len(CHANGES[name].cause + CHANGES[name].remedy))


def crowded(figures: Figures, causes: int, sessions: int) -> Figures:
    """As much of everything as there may be."""
    read = Read(
        9_999,
        ("csv", "jsonl"),
        9_999,
        {LONG + str(number): 99_999 for number in range(30)},
        ((LONG, LONG), (LONG, LONG)),
    )
    return replace(
        figures,
        read=read,
        rows=0,
        causes=tuple(
            (Cause("prefix_changed", "possible", LONGEST), Waste(999_999, 1, 10**12))
            for _ in range(causes)
        ),
        losses=Waste(999_999, 1, 10**12, 1, Decimal(10**18), 1, 10**9, 10**8, 10**10),
        remedies=Remedies(10**6, {Remedy(Policy.FREEZE, LONG): Saved(10**6, Waste(1), Waste(2))}),
        sessions=tuple(
            Session("k", LONG, 999_999, 999_999, 10**12, "Long pause") for _ in range(sessions)
        ),
        summary=replace(
            figures.summary,
            modes=tuple((f"{LONG}{number}", 1) for number in range(30)),
            total=10**9,
        ),
    )


@pytest.mark.parametrize("causes", [0, 1, 2, 9])
@pytest.mark.parametrize("sessions", [0, 1, 9])
def test_everything_fits_one_screen(figures_of, causes, sessions):
    shown = text(crowded(figures_of(*some_turns(), unknown_usage()), causes, sessions), UTC)
    assert WIDTH >= max(map(len, shown))
    assert HEIGHT >= len(shown)
    told = [one for one in shown if " possible " in one or "other cause" in one]
    assert (causes > 0, causes > 0) == (bool(told), any("how sure" in one for one in shown))


def test_causes_that_do_not_fit_are_added_up(figures):
    causes = tuple(
        (Cause("idle", "likely", None), Waste(1, 1, 40 - number)) for number in range(20)
    )
    shown = text(replace(figures, causes=causes), UTC)
    listed = [one for one in shown if " likely " in one]
    (rest,) = [one for one in shown if "other causes" in one]
    left = 20 - len(listed)
    assert rest.split("  by ") == [
        f"{sum(40 - number for number in range(len(listed), 20)):>8,}",
        f"{left} other causes",
    ]


def test_no_name_of_a_log_commands_the_terminal(figures_of):
    """``\x9b2J`` clears the screen of many; ``\u202e`` turns the line round."""
    name = "a\x9b2J\u202eb\n"
    rows = [
        judged("idle", "likely", 9, 0, session=name, mode=name, reason=name),
        judged(name, name, 0, 0, session=name),
    ]
    read = Read(1, ("csv",), 0, {name: 1}, ((name, name),))
    said = "\n".join(text(figures_of(*rows, read=read), UTC))
    assert not {"\x9b", "\u202e"} & set(said)
    assert said.count("2J") >= 5


def test_a_style_never_moves_what_it_colours(figures):
    def loud(said: str, what: str) -> str:
        return f"<{what}>{said}</{what}>"

    styled = text(figures, UTC, loud)
    for what in ("title", "label", "bad", "good"):
        styled = [one.replace(f"<{what}>", "").replace(f"</{what}>", "") for one in styled]
    assert text(figures, UTC) == styled
