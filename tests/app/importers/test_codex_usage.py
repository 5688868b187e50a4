import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importers.codex_usage import Counter, Figures, No, Request, figures


def info(total, last=None):
    given = {"total_token_usage": total, "last_token_usage": last}
    return {name: value for name, value in given.items() if value is not None}


def tokens(given, **more):
    return {"input_tokens": given, "output_tokens": 0, "total_tokens": given, **more}


def used(*lines, marks=()):
    """What the lines of a file count, request by request; a mark comes before a line."""
    counter = Counter()
    found = []
    for place, line in enumerate(lines):
        if place in marks:
            counter.mark()
        request = counter.meet(line)
        if isinstance(request, Request):
            found.append(request.usage.input)
    return found


def test_a_count_that_is_written_again_is_one_request():
    one, two = info(tokens(1_200), tokens(1_200)), info(tokens(2_400), tokens(1_200))
    assert [1_200, 1_200] == used(one, one, two)
    counter = Counter()
    assert isinstance(counter.meet(one), Request)
    assert No.REPEATED is counter.meet(one)


def test_a_total_that_stays_is_the_same_request_whatever_else_is_said_of_it():
    again = info(tokens(1_200), tokens(7))
    assert [1_200] == used(info(tokens(1_200), tokens(1_200)), again)


def test_counters_that_fall_after_a_break_are_no_repetitions():
    """CASES 87: 1,000 + 500 + 200 + 250."""
    lines = [
        info(tokens(1_000), tokens(1_000)),
        info(tokens(1_500), tokens(500)),
        info(tokens(1_500), tokens(500)),
        info(tokens(200), tokens(200)),
        info(tokens(450)),
    ]
    assert [1_000, 500, 200, 250] == used(*lines, marks=[3]) == used(*lines)


def test_counters_may_begin_anew_with_figures_that_were_there_before():
    one, two = info(tokens(1_000), tokens(1_000)), info(tokens(1_500), tokens(500))
    assert [1_000, 500, 1_000] == used(one, two, one, marks=[2])


def test_a_lowered_total_is_never_charged():
    lines = [info(tokens(9_000), tokens(9_000)), info(tokens(4_000), tokens(300))]
    assert [9_000, 300] == used(*lines, marks=[1]) == used(*lines)


def test_what_was_used_is_unknown_where_counters_fell_to_nobody_knows_what():
    assert [9_000, None] == used(info(tokens(9_000)), info(tokens(4_000)), marks=[1])


def test_a_line_that_another_one_has_overtaken_counts_once():
    one, two, three = (info(tokens(n), tokens(1_000)) for n in (1_000, 2_000, 3_000))
    assert [1_000] * 3 == used(one, two, one, three)
    assert [1_000] * 3 == used(one, three, two), "it was never seen before, so it is a request"


def test_totals_without_their_sum_are_compared_part_by_part():
    parts = [{"input_tokens": n, "output_tokens": 1} for n in (100, 250)]
    assert [100, 150] == used(*map(info, parts))
    grown = [{"input_tokens": 100, "output_tokens": n} for n in (1, 5)]
    assert 2 == len(used(*map(info, grown)))


def test_requests_of_one_size_are_as_many_as_their_total_says():
    assert [50, 50] == used(info(tokens(50), tokens(50)), info(tokens(100), tokens(50)))


def test_without_totals_only_the_very_same_line_is_a_repetition():
    one, other = info(None, tokens(50)), info(None, tokens(60))
    assert [50, 60, 50] == used(one, one, other, one)
    keys = {Counter().meet(one).key, Counter().meet(other).key}
    assert 2 == len(keys)


@pytest.mark.parametrize("last", [None, {}, {"total_tokens": 3}])
def test_without_the_last_usage_the_total_tells_it(last):
    assert [100, 150] == used(info(tokens(100), last), info(tokens(250), last))


@pytest.mark.parametrize(
    "line",
    [
        None,
        {},
        [],
        info(tokens(0), tokens(0)),
        info({"input_tokens": 0, "total_tokens": 12_000}, tokens(0)),
        info(tokens(90_000), {**tokens(0), "total_tokens": 6_064}),
    ],
)
def test_what_tells_of_no_request_is_none_and_changes_nothing(line):
    one, two = info(tokens(100), tokens(100)), info(tokens(250), tokens(150))
    assert No.NOTHING is Counter().meet(line)
    assert [100, 150] == used(line, one, line, one, line, two)


def test_a_part_that_alone_falls_began_anew():
    lines = (info(tokens(900, cache_write_input_tokens=200)), info(tokens(1_900)))
    counter = Counter()
    counter.meet(lines[0])
    fallen = counter.meet(info(tokens(1_900, cache_write_input_tokens=0)))
    assert (1_000, 0) == (fallen.usage.input, fallen.usage.written)
    counter = Counter()
    counter.meet(info(tokens(900, cached_input_tokens=5_000)))
    assert counter.meet(info(tokens(950, cached_input_tokens=100))).usage.cached is None


def test_what_is_not_said_is_unknown():
    assert figures({"input_tokens": 3}) == Figures(input=3)
    assert figures({"input_tokens": -3, "output_tokens": "4"}) == Figures()
    assert figures([3]) == Figures()
    assert figures({"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2}) == Figures(
        input=9, cached=4, output=2
    )


def test_usage_of_zeros_is_none():
    assert figures(tokens(0)).usage().input_tokens is None
    assert 5 == figures(tokens(5)).usage().input_tokens


class Naive:
    """A client that counts, and writes each count again as often as it likes."""

    def __init__(self):
        self.lines, self.sizes, self.total, self.marks = [], [], 0, []

    def request(self, size):
        self.total += size
        self.sizes.append(size)
        self.lines.append(info(tokens(self.total), tokens(size)))

    def again(self, back):
        self.lines.append(self.lines[-1 - back % min(3, len(self.lines))])

    def reset(self, to):
        self.marks.append(len(self.lines))
        self.total = to


steps = st.lists(
    st.tuples(st.just("request"), st.integers(1, 9_000)) | st.tuples(st.just("again"), st.just(0)),
    max_size=12,
)


@given(st.lists(steps, min_size=1, max_size=4))
def test_all_that_was_requested_is_counted_once(runs):
    """However often counts are written again, and however often they begin anew."""
    client = Naive()
    for number, run in enumerate(runs):
        if number:
            client.reset(0)
        for name, value in [("request", 20_000 + number), *run]:
            getattr(client, name)(value)
    assert client.sizes == used(*client.lines, marks=client.marks)
