"""The HTTP side: routes, and the answers with their headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from .actions import Step
from .cache import render
from .errors import ApiError, missing_parameter, previous_response_not_found, unknown_parameter
from .faults import HttpError, RequestFault, SseForm
from .headers import Headers, credential_of
from .held import Held
from .items import check_transcript, input_items
from .log import Attempt
from .parameters import COMPACT, check_types
from .private import private_headers
from .response import Response, compaction_item, http_error, visible
from .usage import usage_of
from .wire import Json, dumps

if TYPE_CHECKING:
    from .core import Provider

JSON_TYPE = ("content-type", "application/json")
PREFIXES = ("/v1", "/openai/v1", "/backend-api/codex", "/codex")


@dataclass(slots=True)
class HttpReply:
    """An HTTP answer. Wait ``delay`` seconds, then:

    - ``steps`` is None: send ``status``, ``headers`` and ``body``;
    - ``streamed``: send the head, then the events of ``steps`` written in ``form``;
    - otherwise take the steps without showing their events, and send what ``finish()`` returns.
    """

    status: int
    headers: Headers
    body: bytes | None = None
    steps: Iterator[Step] | None = None
    streamed: bool = False
    form: SseForm = field(default_factory=SseForm)
    delay: float = 0.0
    finish: Callable[[], HttpReply] | None = None

    def complete(self) -> HttpReply:
        """Take all steps of an answer that is not streamed, at once. For tests without a shell."""
        if self.finish is None or self.steps is None:
            return self
        delay = sum(wait for wait, _ in self.steps)
        done = self.finish()
        done.delay = self.delay + delay
        return done

    def json(self) -> Json:
        """The complete body, decoded."""
        body = self.complete().body
        assert body is not None
        value = json.loads(body)
        assert isinstance(value, dict)
        return value


def json_reply(value: Json, *, status: int = 200, headers: Headers = ()) -> HttpReply:
    return HttpReply(status, (JSON_TYPE, *headers), dumps(value).encode())


def error_reply(error: ApiError) -> HttpReply:
    if not error.message:
        return HttpReply(error.status, error.headers, b"")
    return json_reply(error.body(), status=error.status, headers=error.headers)


def route(core: Provider, method: str, path: str, headers: Headers, body: bytes | str) -> HttpReply:
    tail = path.partition("?")[0]
    for prefix in PREFIXES:
        if tail.startswith(f"{prefix}/"):
            tail = tail[len(prefix) :]
            break
    try:
        credential = credential_of(headers)
        if tail == "/responses" and method == "POST":
            return _create(core, credential, path, headers, body)
        if tail == "/responses/compact" and method == "POST":
            return _compact(core, credential, path, headers, body)
        if tail == "/models" and method == "GET":
            return _models(core)
        if tail.startswith("/responses/") and method in ("GET", "DELETE"):
            return _stored(core, credential, method, tail.removeprefix("/responses/"))
        known = tail in ("/responses", "/responses/compact", "/models")
        if known:
            raise ApiError(f"Method {method} is not allowed for {path}.", status=405)
        raise ApiError(f"Invalid URL ({method} {path})", status=404)
    except ApiError as error:
        return error_reply(error)


def _text(body: bytes | str) -> str:
    try:
        return body if isinstance(body, str) else body.decode()
    except UnicodeDecodeError as error:
        raise ApiError(f"We could not parse the JSON body of your request: {error}") from None


def _create(
    core: Provider, credential: str, path: str, headers: Headers, body: bytes | str
) -> HttpReply:
    attempt = core.record(transport="http", headers=headers, path=path, frame=_text(body))
    try:
        core.read_body(attempt)
        if attempt.body.get("stream") is True:
            attempt.transport = "sse"
        faults = core.faults.for_request(attempt)
        for fault in faults:
            if isinstance(fault, HttpError):
                return _scripted_error(attempt, fault)
        response = core.prepare(attempt, credential, _prior(core, attempt, credential))
    except ApiError as error:
        attempt.outcome = f"error:{error.code or error.kind}"
        attempt.status = error.status
        return error_reply(error)
    more = private_headers(response.state) if core.flavour.private_events else ()
    steps = response.steps(faults, commit=_nothing_to_hold, fail=_nothing_to_evict)
    if attempt.transport == "sse":
        return _stream(steps, more, faults)
    return HttpReply(200, more, steps=steps, finish=partial(_finished, response, more))


def _nothing_to_hold(_held: Held) -> None:
    """Over HTTP only storage keeps a response."""


def _nothing_to_evict() -> None:
    """Over HTTP there is no connection-local response."""


def _prior(core: Provider, attempt: Attempt, credential: str) -> Held | None:
    wanted = attempt.previous_response_id
    if wanted is None:
        return None
    stored = core.shelf.stored(wanted, credential)
    if stored is None:
        raise previous_response_not_found(wanted)
    return stored


def _scripted_error(attempt: Attempt, fault: HttpError) -> HttpReply:
    attempt.outcome = f"error:{fault.code or fault.kind}"
    attempt.status = fault.status
    if fault.body is not None:
        return HttpReply(fault.status, fault.headers, fault.body.encode())
    return error_reply(http_error(fault))


def _stream(steps: Iterator[Step], more: Headers, faults: Sequence[RequestFault]) -> HttpReply:
    form = next((fault for fault in faults if isinstance(fault, SseForm)), SseForm())
    head = () if form.content_type is None else (("content-type", form.content_type),)
    return HttpReply(200, (*head, *more), steps=steps, streamed=True, form=form)


def _finished(response: Response, more: Headers) -> HttpReply:
    """The JSON answer: the terminal event's response object, or the error in its place."""
    event = response.last_event
    if event is None:
        raise RuntimeError("take all steps of the answer before you ask for its end")
    if event.get("type") == "error":
        error = event.get("error") or {k: v for k, v in event.items() if k != "type"}
        return json_reply({"error": error}, status=response.attempt.status or 500, headers=more)
    value = event["response"]
    if response.attempt.body.get("background"):
        value = {**value, "status": "queued", "output": [], "usage": None}
    return json_reply(value, headers=more)


def _compact(
    core: Provider, credential: str, path: str, headers: Headers, body: bytes | str
) -> HttpReply:
    attempt = core.record(transport="http", headers=headers, path=path, frame=_text(body))
    try:
        core.read_body(attempt)
        for fault in core.faults.for_request(attempt):
            if isinstance(fault, HttpError):
                return _scripted_error(attempt, fault)
        for name in attempt.body:
            if name not in COMPACT:
                raise unknown_parameter(name)
        check_types(attempt.body)
        if not isinstance(attempt.body.get("model"), str):
            raise missing_parameter("model")
        prior = _prior(core, attempt, credential)
        given = input_items(attempt.body.get("input"), attempt.input_texts, core.issued_kinds)
        items = (*(prior.items if prior else ()), *given)
        if not items:
            raise missing_parameter("input")
        check_transcript(items, generates=False, require_outputs=False)
    except ApiError as error:
        attempt.outcome = f"error:{error.code or error.kind}"
        attempt.status = error.status
        return error_reply(error)
    prompt = render(credential, attempt.body, visible(items))
    looked = core.cache.look_up(prompt, attempt.body, core.now())
    users = [i.value for i in items if i.kind == "message" and i.value.get("role") == "user"]
    output = [*users, compaction_item(core.new_id("cmp"), len(items))]
    usage = usage_of(str(attempt.body["model"]), prompt, looked, output[-1:])
    attempt.response_id = core.new_id("resp")
    attempt.outcome, attempt.status, attempt.usage = "completed", 200, usage
    reply = json_reply(
        {
            "id": attempt.response_id,
            "object": "response.compaction",
            "created_at": int(core.now()),
            "output": output,
            "usage": usage,
        }
    )
    reply.delay = core.latency.first_event(
        http=True,
        uploaded=len(attempt.frame),
        input_tokens=prompt.tokens,
        cached_tokens=looked.cached,
    )
    return reply


def _models(core: Provider) -> HttpReply:
    data = [
        {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "system"}
        for name in core.models
    ]
    return json_reply({"object": "list", "data": data})


def _stored(core: Provider, credential: str, method: str, tail: str) -> HttpReply:
    response_id, _, rest = tail.partition("/")
    held = core.shelf.stored(response_id, credential)
    if held is None or rest not in ("", "input_items"):
        raise ApiError(f"Response with id '{response_id}' not found.", status=404)
    if method == "DELETE":
        core.shelf.delete(response_id)
        return json_reply({"id": response_id, "object": "response", "deleted": True})
    if rest:
        inputs = held.transcript[: len(held.items) - len(held.output)]
        return json_reply({"object": "list", "data": inputs, "has_more": False})
    return json_reply(held.response)
