from app.analysis.continuity import Share
from app.analysis.runs import counts, residency
from tests.support.rows import START_MS, make_row

SECOND = 1_000
MODES = {"i": "ws_incremental", "j": "http_incremental", "f": "ws_full", "h": "http_full"}


def session(letters, **more):
    """One turn a second; capitals are eligible, ``f`` and ``h`` are not. ``n``-th turn has
    ``n`` tokens and lasts ``n`` milliseconds."""
    return [
        make_row(
            started_at=START_MS + number * SECOND,
            mode=MODES[letter.lower()],
            eligible=letter.isupper() or letter in "ij",
            input_tokens=number + 1,
            duration_ms=number + 1.0,
            **more,
        )
        for number, letter in enumerate(letters)
    ]


def test_known_runs_give_exact_figures():
    told = residency(session("fiiiFijHFii"))
    assert Share(7, 11) == told.turns
    assert Share(2 + 3 + 4 + 6 + 7 + 10 + 11, 66) == told.input == told.time
    assert (3, 3, 7 / 3) == (told.runs, told.longest_run, told.mean_run)
    assert 4 * SECOND == told.first_break
    assert (3, 3) == (told.breaks, told.returned)
    assert (1 + 2 + 1) * SECOND / 3 == told.mean_return


def test_a_break_that_nothing_came_back_from_is_in_no_mean():
    told = residency(session("fiFiF"))
    assert (2, 1, 1.0 * SECOND) == (told.breaks, told.returned, told.mean_return)


def test_what_is_not_known_is_not_zero():
    told = residency([])
    assert (Share(0, 0), None, None) == (told.turns, told.turns.rate, told.mean_run)
    assert (None, None, None) == (told.longest_run, told.first_break, told.mean_return)
    [row] = session("i")
    bare = residency([make_row(input_tokens=None, duration_ms=None), row])
    assert (Share(2, 2), Share(1, 1), Share(1, 1)) == (bare.turns, bare.input, bare.time)


def test_what_is_no_generation_of_known_mode_ends_no_run():
    beside = [
        make_row(kind="warmup", mode="ws_full"),
        make_row(kind="compaction", mode="http_full"),
        make_row(status="failed", mode="ws_full"),
        make_row(mode=None),
    ]
    assert not any(map(counts, beside))
    first, second = session("ii")
    assert (1, 2) == (
        (told := residency([first, *beside, second])).runs, told.longest_run
    )  # fmt: skip
