from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.rollups.shares import count_shares, stored_shares, summed_shares

shares = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
numbers = st.dictionaries(shares, st.integers(1, 2**32), max_size=8)


@given(numbers, numbers)
def test_what_is_stored_one_after_the_other_is_counted_together(some, more):
    assert Counter(some) + Counter(more) == count_shares(stored_shares(some) + stored_shares(more))


@given(st.lists(numbers, max_size=3))
def test_strings_together_are_as_if_stored_at_once(some):
    together = sum(map(Counter, some), Counter())
    assert stored_shares(together) == summed_shares([stored_shares(one) for one in some])


@given(st.lists(st.tuples(shares, st.integers(1, 9)), unique_by=lambda one: one[0]), st.randoms())
def test_their_order_does_not_matter(some, randomly):
    other = list(some)
    randomly.shuffle(other)
    assert stored_shares(dict(some)) == stored_shares(dict(other))


def test_no_session_takes_no_byte():
    assert b"" == stored_shares({})
    assert Counter() == count_shares(b"")
