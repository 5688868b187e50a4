from hypothesis import given
from hypothesis import strategies as st

from app.charts.source import TokenSums
from app.charts.tokens import tokens
from tests.support.charts import ListSource, quarter_hours


def chart(*sums):
    return tokens(ListSource(quarter_hours(len(sums)), token_sums=sums))


def test_the_layers_add_up_to_the_input():
    found = chart(TokenSums(2, 0, 1000, 700, 100))
    layers = {trace["meta"]["role"]: trace["y"] for trace in found.data}
    assert layers == {"cached": [700], "cache_write": [100], "non_cached": [200]}
    assert found.table.rows[0][2:7] == [1000, 700, 100, 300, 0.7]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.integers(0, 10**6),
            st.integers(0, 10**6),
            st.integers(0, 10**6) | st.none(),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_layers_add_up_whatever_is_reported(entries):
    sums = [
        TokenSums(known, 0, max(given, cached), cached, write)
        for known, given, cached, write in entries
    ]
    found = chart(*sums)
    for place, entry in enumerate(sums):
        parts = [trace["y"][place] or 0 for trace in found.data]
        assert all(part >= 0 for part in parts)
        assert sum(parts) == entry.input


def test_without_reported_writes_there_is_no_layer_of_zeros():
    found = chart(TokenSums(1, 0, 10, 4, None))
    assert [trace["name"] for trace in found.data] == ["cached", "not cached"]


def test_a_reported_zero_is_zero_and_an_unknown_bucket_a_gap():
    found = chart(TokenSums(1, 0, 10, 0, 0), TokenSums(0, 3, 0, 0, None))
    assert [trace["y"] for trace in found.data] == [[0, None], [0, None], [10, None]]
    assert found.table.rows[1][2:9] == [None, None, None, None, None, 0, 3]


def test_the_share_is_of_sums_not_a_mean_of_shares():
    found = chart(TokenSums(1, 0, 10, 0, None), TokenSums(1, 2, 100_000, 95_000, None))
    assert found.summary == (
        "95 % of 100,010 input tokens came from the cache; usage of 2 turns is unknown."
    )


def test_turns_without_any_usage_are_told():
    assert chart(TokenSums(0, 2, 0, 0, None)).summary == "No known usage in 2 turns."
