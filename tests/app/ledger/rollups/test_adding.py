import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ledger.models import turns
from app.ledger.rollups.adding import SHARE, TURNS, added, counted
from app.ledger.rollups.contribution import DAY, HOUR, QUARTER
from app.ledger.rollups.plan import Plan
from app.ledger.rollups.shares import split
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
keys = st.sampled_from(
    ["a", "0", "2b", 'with "quotes"', "back\\slash", "line\nbreak", "é 日 🙂", "['x']"]
)
one_turn = st.fixed_dictionaries(
    {
        "session_key": keys,
        "started_at": st.integers(0, 3 * HOUR).map(lambda at: DAWN + at),
        "mode": st.sampled_from(["ws_incremental", "http_incremental", "ws_full", None]),
        "status": st.sampled_from(["completed", "incomplete", "failed"]),
        "kind": st.sampled_from(["generation", "warmup"]),
    }
)
# Hours that are over, quarters, and rows.
MADE = Plan(
    [],
    rows=[(DAWN + 2 * HOUR, DAWN + 2 * HOUR + 100), (DAWN + 2 * HOUR + QUARTER, DAWN + 3 * HOUR)],
    stretches={HOUR: [(DAWN, DAWN + HOUR)], QUARTER: [(DAWN + HOUR, DAWN + 2 * HOUR)]},
)


def is_within(at: int) -> bool:
    spans = [*MADE.rows, *MADE.stretches[HOUR], *MADE.stretches[QUARTER]]
    return any(first <= at < end for first, end in spans)


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(one_turn, max_size=30), st.sets(keys))
def test_sums_are_those_of_the_rows_one_by_one(holding, some, only):
    later = make_row(session_key="later", started_at=DAWN + DAY)
    engine = holding([*(make_row(**turn) for turn in some), later])
    sums, shares = {}, {}
    for turn in some:
        if is_within(turn["started_at"]):
            key = turn["session_key"]
            known = (turn["kind"], turn["mode"] is None) == ("generation", False) and (
                turn["status"] != "failed"
            )
            continued = known and turn["mode"] != "ws_full"
            part, whole = shares.get(key, (0, 0))
            sums[key] = sums.get(key, 0) + 1
            shares[key] = (part + continued, whole + known)
    with engine.connect() as connection:
        assert sums == added(connection, MADE, TURNS)
        found = added(connection, MADE, SHARE)
        assert shares == {key: split(share) for key, share in found.items()}
        few = {key: number for key, number in sums.items() if key in only}
        assert few == added(connection, MADE, TURNS, only)
        assert {} == added(connection, Plan([]), SHARE)


@pytest.mark.parametrize("lengths", [[], [1, 2, 2, 3, 3, 3]])
def test_values_are_counted(engine, lengths):
    write_rows(engine, [make_row(started_at=DAWN + at) for at in lengths])
    with engine.connect() as connection:
        found = counted(connection, f"started_at - {DAWN}", f"FROM {turns.name}")
    assert {at: at for at in set(lengths)} == found
