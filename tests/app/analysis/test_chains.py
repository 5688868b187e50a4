from hypothesis import given

from app.analysis import chains
from app.analysis.chains import Session, judge_session, order_of
from app.analysis.verdicts import Grade, Judged, Verdict, judge
from app.ledger.rows import TurnRow
from tests.support.judging import session_rows
from tests.support.rows import START_MS, make_row

SECOND = 1_000


def turn(name: str, start: int, end: int, given: int, cached: int, **changes) -> TurnRow:
    """A turn between two seconds, sent in full for a reason that says nothing of the cache."""
    values = {
        "turn_id": name,
        "started_at": START_MS + start * SECOND,
        "ended_at": START_MS + end * SECOND,
        "input_tokens": given,
        "cached_tokens": cached,
        "mode": "ws_full",
        "reason": "connection_lost",
    }
    return make_row(**(values | changes))


def words(*rows: TurnRow) -> dict[str, str]:
    return {name: judged.verdict.value for name, judged in judge_session(rows).items()}


SHARED = 11_008
FIRST = turn("first", 0, 1, 40_000, SHARED)


def test_a_row_follows_the_one_that_ended_last_before_it_started():
    rows = [FIRST, turn("long", 2, 30, 90_000, 80_000), turn("short", 3, 4, 41_000, 39_936)]
    after_short = turn("after", 10, 11, 42_000, 40_960)
    assert "hit" == words(*rows, after_short)["after"], "89,984 would have been missed"
    after_long = turn("after", 31, 32, 91_000, 40_960)
    assert "unknown" == words(*rows, after_long)["after"]


def test_a_row_follows_the_row_whose_response_it_names():
    rows = [
        turn("first", 0, 1, 40_000, SHARED, response_id="r1"),
        turn("second", 2, 3, 90_000, 39_936, response_id="r2"),
    ]
    branch = turn("branch", 10, 11, 41_000, 39_936, previous_response_id="r1")
    assert "hit" == words(*rows, branch)["branch"]
    unheard_of = turn("branch", 10, 11, 91_000, 39_936, previous_response_id="r0")
    told = words(rows[0], turn("second", 2, 3, 90_000, 80_000), unheard_of)
    assert "unknown" == told["branch"], "it follows the last one by its time"


def test_parallel_chains_are_not_mixed():
    rows = [
        turn("a1", 0, 1, 40_000, 0, chain="a"),
        turn("b1", 2, 3, 3_000, 0, chain="b", reason="no_baseline"),
        turn("a2", 4, 5, 41_000, 39_936, chain="a"),
        turn("b2", 6, 7, 4_000, 2_944, chain="b"),
        turn("a3", 8, 9, 42_000, 40_960, chain="a"),
    ]
    starts = {"a1": "cold_start", "b1": "cold_start"}
    assert starts | dict.fromkeys(["a2", "a3", "b2"], "hit") == words(*rows)


def test_another_conversation_of_a_session_begins_a_chain():
    title = turn("title", 2, 3, 2_000, 0, reason="no_baseline")
    assert "cold_start" == words(FIRST, title)["title"]
    seen = {"reason": "continuation_off", "shadow_reason": "no_baseline"}
    assert "cold_start" == words(FIRST, turn("title", 2, 3, 2_000, 0, **seen))["title"]
    told = turn("title", 2, 3, 90_000, 0, reason="no_baseline", items_total=2)
    assert "cold_start" == words(turn("first", 0, 1, 40_000, SHARED, items_total=9), told)["title"]


def test_a_conversation_goes_on_after_a_restart():
    after = turn("after", 60, 61, 42_000, 39_936, reason="no_baseline")
    assert "hit" == words(FIRST, after)["after"]


def test_a_log_that_tells_no_modes_is_one_chain():
    silent = {"source": "import:codex", "mode": None, "reason": None}
    rows = [
        turn("one", 0, 9, 40_000, 0, **silent),
        turn("two", 5, 10, 41_000, 39_936, **silent),
        turn("three", 6, 11, 42_000, 40_960, **silent),
    ]
    assert {"one": "cold_start", "two": "hit", "three": "hit"} == words(*rows)


def test_a_chain_that_a_log_names_begins_with_its_first_row():
    silent = {"source": "import:claude-code", "mode": None, "reason": None}
    rows = [
        turn("main", 0, 1, 40_000, 0, chain="main", **silent),
        turn("agent", 2, 3, 39_000, 2_432, chain="agent", **silent),
        turn("main2", 4, 5, 41_000, 39_936, chain="main", **silent),
        turn("agent2", 6, 7, 40_000, 38_912, chain="agent", **silent),
    ]
    starts = {"main": "cold_start", "agent": "shared_prefix"}
    assert starts | {"main2": "hit", "agent2": "hit"} == words(*rows)


def test_a_compaction_tells_of_the_turn_after_it():
    compaction = turn("compaction", 2, 3, 41_000, 39_936, kind="compaction")
    after = turn("after", 4, 5, 9_000, 0)
    assert "history_rewrite" == words(FIRST, compaction, after)["after"]
    assert Grade.PROVEN == judge_session([FIRST, compaction, after])["after"].grade


def test_a_branch_leaves_the_verdicts_of_its_root_alone():
    rows = [
        turn("one", 0, 1, 40_000, SHARED, response_id="r1"),
        turn("two", 60, 61, 41_000, 39_936, response_id="r2"),
        turn("three", 62, 63, 42_000, 20_480, response_id="r3"),
        turn("four", 64, 65, 43_000, 41_984, response_id="r4"),
    ]
    cold = turn("five", 66, 67, 44_000, 0, previous_response_id="r3")
    assert "one_off_partial" == words(*rows)["three"] == words(*rows, cold)["three"]


def test_where_the_beginning_is_gone_the_first_verdict_stays():
    known = {"cache_verdict": "one_off_full", "cache_grade": "proven", "missed_tokens": 30_000}
    session = Session(cut=True)
    told = Judged(Verdict.ONE_OFF_FULL, Grade.PROVEN, 30_000)
    assert {"late": told} == session.push(turn("late", 0, 1, 40_000, 20_480, **known))
    after = session.push(turn("after", 2, 3, 41_000, 9_984))
    again = session.push(turn("again", 4, 5, 42_000, 40_960))
    assert Verdict.UNKNOWN == after["after"].verdict
    assert Verdict.ONE_OFF_PARTIAL == again["after"].verdict, "what others share is not known"


def test_rows_are_in_the_order_of_their_ends_and_where_that_is_coarse_as_a_history_grows():
    names = [
        turn("c", 0, 1, 40_000, 0),
        turn("b", 1, 1, 41_000, 0),
        turn("a", 1, 1, 42_000, 0),
        turn("e", 1, 1, 9_000, 0, epoch=1, epoch_turn=2),
        turn("d", 1, 1, 9_000, 0, epoch=1, epoch_turn=3),
    ]
    mixed = [names[place] for place in (3, 1, 4, 0, 2)]
    assert list("cbaed") == [row.turn_id for row in sorted(mixed, key=order_of)]


def test_what_is_remembered_is_bounded():
    session = Session()
    for number in range(2_000):
        session.push(
            turn(
                f"t{number}",
                number,
                number + 1,
                40_000,
                0,
                chain=f"c{number}",
                response_id=f"r{number}",
            )
        )
    before = session._before
    assert (chains.ANSWERS, chains.CHAINS, chains.ENDED) == (
        *(len(kept) for kept in (before._answers, before._chains, before._ended)),
    )  # fmt: skip


def test_of_a_long_chain_only_its_end_is_remembered():
    session = Session()
    for number in range(5_000):
        session.push(turn(f"t{number}", number, number + 1, 40_000 + number, 0, chain="c"))
    turns = set()
    waiting = [one.known.turn for one in session._before._ended]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in turns:
            turns.add(one)
            waiting += [one.before, one.after]
    assert len(turns) <= chains.ENDED + 8


@given(session_rows())
def test_chains_are_those_that_the_rules_tell_taken_one_by_one(rows):
    """Without branches, a session's verdicts are those of its chains; a naive reading finds them."""
    parents = naive_parents(sorted(rows, key=order_of))
    if len({parent for parent in parents.values() if parent}) < sum(map(bool, parents.values())):
        return  # it branches
    found: dict[str, Judged] = {}
    for row in rows:
        if parents[row.turn_id] is None:
            line = [row]
            while after := [r for r in rows if parents[r.turn_id] == line[-1].turn_id]:
                line += after
            found |= judge(line)
    assert found == judge_session(rows)


def naive_parents(rows: list[TurnRow]) -> dict[str, str | None]:
    parents: dict[str, str | None] = {}
    for place, row in enumerate(rows):
        earlier = rows[:place]
        named = [r for r in earlier if r.response_id and r.response_id == row.previous_response_id]
        same = [r for r in earlier if row.chain and r.chain == row.chain]
        logged = row.source.startswith("import") and row.reason is None
        silent = logged and row.mode is None
        ended = [r for r in earlier if silent or r.ended_at <= row.started_at]
        if logged and row.chain:
            ended = []
        seen = row.shadow_reason if row.reason == "continuation_off" else row.reason
        if seen == "no_baseline":
            ended = [r for r in ended[-1:] if (row.input_tokens or -1) >= (r.input_tokens or 10**9)]
        parent = next((found[-1] for found in (named, same, ended) if found), None)
        parents[row.turn_id] = None if parent is None else parent.turn_id
    return parents
