"""The errors that reach a person, in one shape: ``{"error": {"code", "message", "hint"}}``.

``AppError``
├── ``SettingsError``    a setting is unknown, of the wrong type, or unsafe (raised at start)
├── ``BadParameterError``     a query parameter cannot be read (400)
└── ``LedgerError``      the database or the key beside it cannot be used (raised at start)

Messages may name keys, files and allowed values. They never hold content of a request, a
credential or the value of a secret setting.
"""

from __future__ import annotations

from typing import Any


class AppError(Exception):
    """``message`` says what is wrong, ``hint`` what to do about it; ``status`` is for HTTP."""

    def __init__(self, code: str, message: str, hint: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} {self.hint}"

    def as_dict(self) -> dict[str, Any]:
        """The body that every surface answers with."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


class SettingsError(AppError):
    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__("bad_setting", message, hint, status=500)


class BadParameterError(AppError):
    """``name`` is the query parameter at fault."""

    def __init__(self, name: str, message: str, hint: str | None = None) -> None:
        super().__init__("bad_parameter", message, hint, status=400)
        self.name = name


class LedgerError(AppError):
    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint, status=503)
