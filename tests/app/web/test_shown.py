from app.ledger.rows import COLUMNS
from app.web.shown import shown
from tests.support.rows import make_row


def test_a_row_is_shown_with_every_column_and_why():
    found = shown(make_row(status="client_closed"))
    assert tuple(found) == (*COLUMNS, "why", "why_kind")
    assert found["why"] == "The client left before the answer was complete."
    assert found["why_kind"] == "expected"
