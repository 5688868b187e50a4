"""Query strings of the API of alerts. A parameter that is not known is an error."""

from __future__ import annotations

import difflib
import re
from typing import Any

from starlette.requests import Request

from app.errors import BadParameterError


def read(request: Request, *names: str) -> dict[str, str]:
    """The parameters that are given and not blank, each once at most."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            listed = f"Parameters are {', '.join(names)}." if names else "It takes none."
            raise BadParameterError(
                name[:64],
                f"There is no parameter {name[:64]!r}.",
                f"Did you mean {near[0]}?" if near else listed,
            )
        if name in found:
            raise BadParameterError(name, f"{name} is given twice.", "Give it once.")
        if value.strip():
            found[name] = value
    return found


def limit(given: dict[str, str], *, default: int = 50, most: int = 500) -> int:
    text = given.get("limit")
    if text is None:
        return default
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise BadParameterError(
            "limit", "limit cannot be that.", f"It is a number from 1 to {most}."
        )
    return int(text)


def parameters(*names: str) -> dict[str, Any]:
    """The same for OpenAPI."""
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in names
        ]
    }
