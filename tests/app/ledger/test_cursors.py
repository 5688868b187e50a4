import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.ledger import cursors

numbers = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3)


@given(numbers)
def test_what_is_written_is_read_back(given_out: list[int]) -> None:
    assert tuple(given_out) == cursors.read(cursors.write(*given_out), len(given_out))


@given(numbers)
def test_a_cursor_goes_into_an_address_as_it_is(given_out: list[int]) -> None:
    text = cursors.write(*given_out)
    assert text.isascii()
    assert not set(text) & set("=&+/?#% ")


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "!!", "é", "MTA", "MTA6LTE", cursors.write(1, 2, 3), cursors.write(1, 2**63)],
)
def test_what_was_not_given_out_is_refused(cursor: str) -> None:
    with pytest.raises(AppError) as caught:
        cursors.read(cursor, 2)
    assert caught.value.code == "bad_cursor"
