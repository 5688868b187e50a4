"""What is typed on the page for a receiver, checked; and how it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.alerts import endpoints
from app.alerts.endpoints import Kind, UnreadableError
from app.alerts.sealed import SealBrokenError
from app.errors import AppError

LONGEST_NAME = 100


def refused(what: str, hint: str | None = None) -> AppError:
    message = f"{what[:1].upper()}{what[1:]}."
    return AppError("bad_receiver", message, hint, status=422)


def name(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= LONGEST_NAME or not text.isprintable():
        raise refused(f"the name must be a text of 1 to {LONGEST_NAME} characters in one line")
    if not endpoints.may_be_name(text):
        raise refused("the name must not be an address or a credential")
    return text


def kind(value: Any) -> Kind:
    try:
        return Kind(value)
    except ValueError:
        raise refused(f"kind must be one of {', '.join(Kind)}") from None


def address(value: Any, environ: Mapping[str, str]) -> tuple[str, str]:
    """As it is written, and the URL that it is or names. The guard has yet to see it."""
    written = value.strip() if isinstance(value, str) else ""
    try:
        return written, endpoints.read(written, "url", environ, files=False)
    except ValueError as error:
        raise refused(str(error)) from None


def secrets(kind: Kind, value: Any, environ: Mapping[str, str]) -> tuple[str, ...]:
    """As they are written, all of them usable now."""
    try:
        written = endpoints.texts(value)
        endpoints.check_count(kind, len(written))
        endpoints.read_secrets(written, environ, files=False)
    except ValueError as error:
        raise refused(str(error)) from None
    return written


def check_count(kind: Kind, count: int) -> None:
    """Whether the secrets that there are suit a new kind."""
    try:
        endpoints.check_count(kind, count)
    except ValueError as error:
        raise refused(str(error), "Give secrets together with kind.") from None


def unreadable(outcome: str, name: str, error: SealBrokenError | ValueError) -> UnreadableError:
    if isinstance(error, SealBrokenError):
        return UnreadableError(outcome, error.message, error.hint, error.code)
    return UnreadableError(
        outcome, f"The receiver {name} cannot be used: {error}.", "Restore it, or change it."
    )


def not_found() -> AppError:
    return AppError("not_found", "There is no such receiver.", status=404)


def conflict() -> AppError:
    return AppError(
        "conflict", "Someone else has changed this receiver.", "Load it again.", status=409
    )


def taken(name: str) -> AppError:
    return AppError(
        "name_taken", f"There is a receiver named {name} already.", "Choose another.", status=409
    )
