"""Where the next page of a list begins: the whole numbers that its rows are ordered by, as text.

The text is for giving back, not for reading; what was not given out is refused.
"""

from __future__ import annotations

import base64
import binascii

from app.errors import AppError

_TOO_LARGE = 2**63  # what a database's whole numbers stay below


def write(*numbers: int) -> str:
    text = ":".join(map(str, numbers))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str, count: int) -> tuple[int, ...]:
    """``count`` numbers. Raises ``AppError`` ``bad_cursor``."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        numbers = tuple(int(part) for part in text.split(":"))
        if len(numbers) != count or not all(0 <= number < _TOO_LARGE for number in numbers):
            raise ValueError
    except (ValueError, binascii.Error):
        raise AppError(
            "bad_cursor",
            "The cursor cannot be read.",
            "Pass next_cursor of the page before, or leave it out to begin anew.",
        ) from None
    return numbers
