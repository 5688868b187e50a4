"""Addresses and secrets of webhooks as they lie in the database: encrypted with the key file."""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken

from app.errors import AppError
from app.keys import Keys

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
        self._fernet = Fernet(base64.urlsafe_b64encode(keys.derive(PURPOSE)))

    def seal(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode("ascii")

    def open(self, text: str) -> str:
        """Raises ``SealBrokenError``."""
        try:
            return self._fernet.decrypt(text.encode()).decode()
        except (InvalidToken, UnicodeError):
            raise SealBrokenError from None
