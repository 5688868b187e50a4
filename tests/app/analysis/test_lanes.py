import pytest

from app.analysis.lanes import ALIVE, GONE, LETTERS, MAY_BE_GONE, Gap, before_each, gap, letter
from engine.model import Mode
from tests.support.rows import START_MS, make_row

MINUTE = 60_000


@pytest.mark.parametrize(
    ("expected", "row"),
    [
        ("i", {}),
        ("j", {"mode": "http_incremental"}),
        ("f", {"mode": "ws_full", "eligible": False}),
        ("F", {"mode": "ws_full"}),
        ("h", {"mode": "http_full", "eligible": False}),
        ("H", {"mode": "http_full"}),
        ("u", {"mode": None}),
        ("x", {"status": "failed"}),
        ("w", {"kind": "warmup"}),
        ("x", {"kind": "warmup", "status": "error"}),
        ("c", {"kind": "compaction", "status": "failed"}),
    ],
)
def test_a_letter_says_the_wire_and_a_capital_a_break(expected, row):
    made = make_row(**row)
    assert expected == letter(made.kind, made.status, made.mode, made.eligible)
    assert expected in LETTERS


def test_every_mode_has_a_letter_of_its_own():
    letters = {letter("generation", "completed", mode, eligible=False) for mode in Mode}
    assert len(Mode) == len(letters - {"u"})


@pytest.mark.parametrize(
    ("minutes", "life"), [(0, ALIVE), (30, ALIVE), (31, MAY_BE_GONE), (24 * 60 + 1, GONE)]
)
def test_a_gap_is_held_against_the_life_of_the_cache(minutes, life):
    before = make_row(ended_at=START_MS, started_at=START_MS - 5)
    row = make_row(started_at=START_MS + minutes * MINUTE)
    assert Gap(minutes * MINUTE, life) == gap(before, row)


def test_there_is_no_gap_without_a_turn_before_and_none_below_zero():
    row = make_row(started_at=START_MS)
    assert gap(None, row) is None
    assert Gap(0, ALIVE) == gap(make_row(started_at=START_MS - 5, ended_at=START_MS + 5), row)


def test_a_turn_goes_on_from_the_one_whose_response_it_names_else_from_its_chain():
    first = make_row(turn_id="1", started_at=1, ended_at=2, chain="a", response_id="r1")
    second = make_row(turn_id="2", started_at=3, ended_at=4, chain="b", response_id="r2")
    third = make_row(turn_id="3", started_at=5, ended_at=6, chain="a")
    fourth = make_row(turn_id="4", started_at=7, ended_at=8, chain="a", previous_response_id="r2")
    found = before_each([fourth, third, second, first])
    assert {"1": None, "2": first, "3": first, "4": second} == found
