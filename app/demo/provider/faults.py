"""What can go wrong on purpose. ``Script`` says when.

Where a fault has ``after``, it strikes behind that many events of the response: 0 before the
first, -1 right before the terminal event; the name of an event type means behind its first one.

A request that breaks off before its first event (or with an HTTP status) asks nothing of the
responder: a list of replies is not used up by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .actions import Abort, Action, Close, Gate, Hang, Send, Text
from .wire import Json

After = int | str

Headers = tuple[tuple[str, str], ...]


# --- at the upgrade ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefuseUpgrade:
    """Answer the upgrade with an HTTP status; ``message`` None means an empty body."""

    status: int
    headers: Headers = ()
    message: str | None = "The upgrade was refused."
    code: str | None = None


@dataclass(frozen=True, slots=True)
class AbortUpgrade:
    """Drop the TCP connection instead of answering the upgrade."""


@dataclass(frozen=True, slots=True)
class HangUpgrade:
    """Never answer the upgrade, or only after ``seconds``."""

    seconds: float | None = None


UpgradeFault = RefuseUpgrade | AbortUpgrade | HangUpgrade


# --- in the place of the response, or in its midst --------------------------------------------


@dataclass(frozen=True, slots=True)
class HttpError:
    """An HTTP status with an error body, before any stream. Over WebSocket: a nested error frame.

    ``body``: this text instead of the JSON envelope (over HTTP).
    """

    status: int
    message: str = "The server had an error while processing your request."
    code: str | None = None
    kind: str = "server_error"
    param: str | None = None
    headers: Headers = ()
    body: str | None = None


Shape = Literal["nested", "status_code", "no_status", "flat", "failed"]


@dataclass(frozen=True, slots=True)
class ErrorFrame:
    """An error event, in one of the shapes seen in the field.

    None: ``nested`` over WebSocket, ``flat`` in an SSE stream, as the provider does.
    ``nested``: {type, status, error}; ``status_code``: the status under that name; ``no_status``:
    {type, error}; ``flat``: {type, code, message, param}; ``failed``: a ``response.failed`` whose
    response has the error. ``deaf``: the connection never answers anything again.
    ``raw``: exactly this event instead.
    """

    code: str | None = None
    message: str = "The server had an error while processing your request."
    status: int = 500
    kind: str = "server_error"
    param: str | None = None
    shape: Shape | None = None
    after: After = 0
    headers: Headers = ()
    deaf: bool = False
    raw: Json | None = None

    def event(self, response: Json, *, http: bool) -> Json:
        """``response`` is the response object for the shape ``failed``."""
        if self.raw is not None:
            return self.raw
        shape = self.shape or ("flat" if http else "nested")
        if shape == "failed":
            error: Json = {"code": self.code or "server_error", "message": self.message}
            return {"type": "response.failed", "response": {**response, "error": error}}
        if shape == "flat":
            return {
                "type": "error",
                "code": self.code,
                "message": self.message,
                "param": self.param,
            }
        inner: Json = {
            "type": self.kind,
            "code": self.code,
            "message": self.message,
            "param": self.param,
        }
        out: Json = {"type": "error"}
        if shape == "nested":
            out["status"] = self.status
        elif shape == "status_code":
            out["status_code"] = self.status
        out["error"] = inner
        if self.headers:
            out["headers"] = dict(self.headers)
        return out


def previous_response_not_found(
    response_id: str = "resp_x", *, shape: Shape | None = None, after: After = 0
) -> ErrorFrame:
    """The rejection of a continuation that the provider could have made itself."""
    return ErrorFrame(
        code="previous_response_not_found",
        message=f"Previous response with id '{response_id}' not found.",
        status=400,
        kind="invalid_request_error",
        param="previous_response_id",
        shape=shape,
        after=after,
    )


def connection_limit_reached(*, shape: Shape | None = None) -> ErrorFrame:
    return ErrorFrame(
        code="websocket_connection_limit_reached",
        message="Responses websocket connection limit reached (60 minutes). "
        "Create a new websocket connection to continue.",
        status=400,
        kind="invalid_request_error",
        shape=shape,
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """End the connection in the midst: ``action`` is ``Close(code)``, ``Abort()`` or ``Hang()``."""

    action: Action
    after: After = 0


def close(code: int = 1000, *, after: After = 0, reason: str = "") -> Cut:
    """Close the socket; over HTTP the body ends cleanly, without a terminal event."""
    return Cut(Close(code, reason), after)


def abort(*, after: After = 0) -> Cut:
    """Reset TCP."""
    return Cut(Abort(), after)


def silence() -> Cut:
    """Read the request and never answer."""
    return Cut(Hang(), 0)


@dataclass(frozen=True, slots=True)
class Hold:
    """Send nothing more until the test opens the gate, then go on."""

    gate: Gate
    after: After = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """Stall for so many seconds, then go on."""

    seconds: float
    after: After = 0


def stall(*, after: After, seconds: float | None = None) -> Cut | Pause:
    """Stop sending: for ``seconds``, then go on; without them, for ever."""
    return Cut(Hang(), after) if seconds is None else Pause(seconds, after)


@dataclass(frozen=True, slots=True)
class Insert:
    """Send something between the events: a text that may not parse, or an event of any kind."""

    what: Text | Send
    after: After = 1


def garbage(text: str = '{"type":"response.output_te', *, after: After = 1) -> Insert:
    return Insert(Text(text), after)


def extra_event(event: Json, *, after: After = 1) -> Insert:
    return Insert(Send(event), after)


@dataclass(frozen=True, slots=True)
class CloseAfterwards:
    """Answer in full, then end the idle connection: with a code, or None for a reset."""

    code: int | None = 1000


# --- the response as such ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Incomplete:
    """End with ``response.incomplete`` after so many whole items (None: all of them)."""

    reason: str = "max_output_tokens"
    items: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """This ``usage`` in the terminal event. None: the field is left out."""

    value: Json | None = None


@dataclass(frozen=True, slots=True)
class ShuffleDone:
    """Send the ``output_item.done`` events in reverse order, before the terminal event."""


@dataclass(frozen=True, slots=True)
class DropDone:
    """Leave out the ``output_item.done`` events of these output indices (None: all)."""

    indices: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """This list as the terminal event's ``output``, whatever was streamed.

    ``items`` None: the true list (as ``openai`` sends it); ``()`` is the Codex backend's empty one.
    """

    items: tuple[Json, ...] | None = ()


@dataclass(frozen=True, slots=True)
class ConflictingOutput:
    """The terminal ``output`` differs in the last text from what was streamed."""


@dataclass(frozen=True, slots=True)
class NoResponseId:
    """No event of the response has its id."""


@dataclass(frozen=True, slots=True)
class RenameTerminal:
    """The terminal event under another name, as ``response.done``."""

    name: str = "response.done"


@dataclass(frozen=True, slots=True)
class SseForm:
    """How a stream is written over HTTP. ``final_newline`` False: it ends with the last byte of
    data, without the blank line. ``content_type`` None: no such header."""

    newline: str = "\n"
    content_type: str | None = "text/event-stream; charset=utf-8"
    final_newline: bool = True
    event_lines: bool = True
    space: bool = True
    done_line: bool = False
    comments: bool = False
    multi_line_data: bool = False


RequestFault = (
    HttpError
    | ErrorFrame
    | Cut
    | Pause
    | Hold
    | Insert
    | CloseAfterwards
    | Incomplete
    | Usage
    | ShuffleDone
    | DropDone
    | TerminalOutput
    | ConflictingOutput
    | NoResponseId
    | RenameTerminal
    | SseForm
)
