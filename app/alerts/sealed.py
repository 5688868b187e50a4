"""Addresses and secrets of webhooks as they lie in the database: encrypted with the key file.

The library is imported by who has any: it takes as much memory as the whole engine and more.
"""

from __future__ import annotations

import base64
from functools import cached_property
from typing import TYPE_CHECKING

from app.errors import AppError
from app.keys import Keys

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

PURPOSE = "webhooks"


class SealBrokenError(AppError):
    def __init__(self) -> None:
        super().__init__(
            "key_differs",
            "What was saved here cannot be read: it was sealed with another key file.",
            "Restore the key file that was in use then, or type the address and the secrets again.",
            status=409,
        )


class Seal:
    """Texts sealed by one process can be opened by all that share its key file."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    @cached_property
    def _fernet(self) -> Fernet:
        from cryptography.fernet import Fernet  # noqa: PLC0415

        return Fernet(base64.urlsafe_b64encode(self._keys.derive(PURPOSE)))

    def seal(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode("ascii")

    def open(self, text: str) -> str:
        """Raises ``SealBrokenError``."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415

        try:
            return self._fernet.decrypt(text.encode()).decode()
        except (InvalidToken, UnicodeError):
            raise SealBrokenError from None
