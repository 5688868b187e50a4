"""Server-sent events as bytes, in the forms in which they come."""

from __future__ import annotations

import json

from .faults import SseForm
from .wire import Json, dumps


def encode(event: Json, form: SseForm, *, last: bool = False) -> bytes:
    """One event. ``last``: the final one, which some servers leave without its blank line."""
    data = dumps(event)
    if form.multi_line_data:
        data = json.dumps(event, ensure_ascii=True, indent=1)
    return encode_text(data, form, name=event.get("type"), last=last)


def encode_text(data: str, form: SseForm, *, name: str | None = None, last: bool = False) -> bytes:
    """``data`` as it is, under the event name ``name`` if the form has event lines."""
    colon = ": " if form.space else ":"
    lines = []
    if form.comments:
        lines.append(f":{' keep-alive' if form.space else ''}")
    if form.event_lines and name is not None:
        lines.append(f"event{colon}{name}")
    lines += [f"data{colon}{line}" for line in data.split("\n")]
    text = form.newline.join(lines)
    if not (last and not form.final_newline):
        text += form.newline * 2
    return text.encode(errors="surrogatepass")


def done(form: SseForm) -> bytes:
    """The ``[DONE]`` line of other APIs, which some servers add."""
    return encode_text("[DONE]", form) if form.done_line else b""
