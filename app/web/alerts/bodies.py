"""Reading what is sent: a JSON object of bounded size, whose fields are all known.

A field that is not known is refused, never ignored: whoever misspells ``threshold`` should not
get a rule without it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request

from app.errors import AppError

LIMIT = 65_536
"""Bytes; a rule with everything in it needs a tenth."""
Json = dict[str, Any]


async def read(request: Request) -> Json:
    """The body as an object; none at all is an empty one."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LIMIT:
            raise AppError(
                "too_large", "The body is too large.", f"It has at most {LIMIT:,} bytes.", 413
            )
    if not body.strip():
        return {}
    try:
        given = msgspec.json.decode(bytes(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise AppError("bad_json", "The body is no JSON.", "Send one JSON object.", 400) from None
    if not isinstance(given, dict):
        raise AppError("bad_json", "The body is no JSON object.", "Send one JSON object.", 400)
    return given


Body = Annotated[Json, Depends(read)]


def takes(*names: str, needed: tuple[str, ...] = ()) -> Json:
    """For OpenAPI: an object with these fields."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {} for name in names},
        "required": list(needed),
    }
    if not needed:
        del schema["required"]
    return {
        "requestBody": {
            "required": bool(needed),
            "content": {"application/json": {"schema": schema}},
        }
    }


def only(given: Mapping[str, Any], *names: str) -> None:
    """Refuse every field but these."""
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"Fields are {', '.join(names)}." if names else "The body has no fields."
            raise bad(
                name[:64],
                f"There is no field {name[:64]} here.",
                f"Did you mean {near[0]}?" if near else hint,
            )


def text(given: Mapping[str, Any], name: str, *, most: int = 1_000) -> str:
    """A text that must be there and not blank."""
    value = given.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise bad(name, f"{name} must be a text of 1 to {most} characters.")
    return value


def optional_text(given: Mapping[str, Any], name: str, *, most: int = 1_000) -> str | None:
    """None where it is absent or null."""
    return None if given.get(name) is None else text(given, name, most=most)


def whole(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise bad(name, f"{name} must be a whole number.")
    return value


def texts(given: Mapping[str, Any], name: str, *, most: int = 20) -> list[str] | None:
    value = given.get(name)
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or len(value) > most
        or not all(isinstance(each, str) and each.strip() for each in value)
    ):
        raise bad(name, f"{name} must be a list of at most {most} texts.")
    return value


def flag(given: Mapping[str, Any], name: str) -> bool:
    """False where it is absent."""
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise bad(name, f"{name} must be true or false.")
    return value


def table(given: Mapping[str, Any], name: str) -> Json:
    """An object; an empty one where it is absent."""
    value = given.get(name)
    if value is not None and not isinstance(value, dict):
        raise bad(name, f"{name} must be an object.")
    return value or {}


def bad(name: str, message: str, hint: str | None = None) -> AppError:
    return FieldError(name, message, hint)


class FieldError(AppError):
    """``field`` is the part of the body at fault; a page shows the message beside it."""

    def __init__(self, field: str, message: str, hint: str | None = None) -> None:
        super().__init__("bad_field", message, hint, status=422)
        self.field = field

    def as_dict(self) -> Json:
        shape = super().as_dict()
        shape["error"]["field"] = self.field
        return shape
