"""One response: checked, decided, planned, and then sent step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .actions import Abort, Action, Close, Hang, Send, Step, Wait
from .cache import Looked, Prompt, render
from .diagnostics import asked_for, diagnose
from .errors import ApiError
from .faults import CloseAfterwards, Cut, ErrorFrame, Hold, HttpError, Insert, Pause, RequestFault
from .held import Held
from .ids import item_prefix
from .items import (
    Item,
    check_transcript,
    input_items,
    kind_of,
    output_item,
    resolve_references,
)
from .log import Attempt
from .parameters import check_parameters, compaction_threshold
from .plan import Plan, Point, make_plan
from .private import private_events, turn_state
from .replies import Asked, Reply
from .usage import usage_of
from .wire import Json

if TYPE_CHECKING:
    from .core import Provider


class Response:
    """A request that passed all checks. ``steps`` sends its answer."""

    def __init__(
        self,
        core: Provider,
        attempt: Attempt,
        *,
        credential: str,
        transcript: tuple[Item, ...],
        given: tuple[Item, ...],
        conversation: str | None,
    ) -> None:
        self.core = core
        self.attempt = attempt
        self.credential = credential
        self.transcript = transcript
        self.given = given
        self.conversation = conversation
        self.id = core.new_id("resp")
        self.created_at = core.now()
        self.warmup = attempt.body.get("generate") is False
        self.state = turn_state(attempt, core.new_id("ts"))
        self.interrupted = False
        self.lane: str | None = None
        self.prompt: Prompt | None = None
        self.compared = asked_for(attempt.body)
        self.last_event: Json | None = None
        """The terminal event or the error in its place, once it is about to be sent."""

    @property
    def http(self) -> bool:
        return self.attempt.transport != "ws"

    def _look_up(self) -> tuple[Prompt, Looked]:
        body = self.attempt.body
        prompt = self.prompt = render(self.credential, body, visible(self.transcript))
        return prompt, self.core.cache.look_up(prompt, body, self.core.now())

    def plan(self, faults: Sequence[RequestFault]) -> tuple[Plan, float]:
        """The events to send, and the seconds until the first."""
        body = self.attempt.body
        prompt, looked = self._look_up()
        reply = Reply(()) if _never_answers(faults) else self._reply(prompt)
        items = [self._completed(value, verbatim=reply.verbatim) for value in reply.items]
        self.core.issue(items)
        model = str(body.get("model"))

        def usage(output: Sequence[Json]) -> Json:
            return reply.usage or usage_of(model, prompt, looked, output)

        diagnosis = None
        if self.compared is not None:
            before = self.core.shelf.prompt(self.compared, self.credential)
            diagnosis = diagnose(model, before, prompt, looked)
        private: list[Json] = []
        if self.core.flavour.private_events and not self.http:
            private = private_events(model=model, state=self.state, warmup=self.warmup)
        elif self.core.flavour.private_events:
            private = [{"type": "keepalive"}]
        plan = make_plan(
            body,
            items,
            response_id=self.id,
            created_at=self.created_at,
            usage=usage,
            flavour=self.core.flavour,
            faults=faults,
            private=private,
            diagnosis=diagnosis,
        )
        delay = self.core.latency.first_event(
            http=self.http,
            uploaded=len(self.attempt.frame),
            input_tokens=prompt.tokens,
            cached_tokens=looked.cached,
        )
        return plan, delay

    def _reply(self, prompt: Prompt) -> Reply:
        if self.warmup:
            return Reply(())
        compaction = self._compaction()
        if self.given and self.given[-1].kind == "compaction_trigger":
            return Reply((compaction,))
        reply = self.core.responder(
            Asked(
                body=self.attempt.body,
                transcript=tuple(held.value for held in self.transcript),
                input=tuple(held.value for held in self.given),
                new_id=self.core.new_id,
                transport=self.attempt.transport,
            )
        )
        threshold = compaction_threshold(self.attempt.body)
        if threshold is not None and prompt.tokens >= threshold:
            return Reply((compaction, *reply.items), reply.verbatim, reply.usage)
        return reply

    def _compaction(self) -> Json:
        return compaction_item(self.core.new_id("cmp"), len(self.transcript))

    def _completed(self, value: Json, *, verbatim: bool) -> Json:
        if verbatim:
            return value
        kind = kind_of(value)
        out = {"id": self.core.new_id(item_prefix(kind)), **value}
        if kind in ("message", "function_call", "custom_tool_call"):
            out = {"status": "completed", **out}
        return out

    def steps(
        self,
        faults: Sequence[RequestFault],
        *,
        commit: Callable[[Held], None],
        fail: Callable[[], None],
    ) -> Iterator[Step]:
        """Send the response. ``commit`` comes right before the terminal event, ``fail`` before any
        other end."""
        attempt = self.attempt
        attempt.outcome = "running"
        try:
            for fault in faults:
                if isinstance(fault, HttpError):
                    fail()
                    yield 0.0, self._refuse(fault)
                    return
            plan, delay = self.plan(faults)
            yield from self._send(plan, delay, commit, fail)
            if attempt.outcome not in ("completed", "incomplete", "warmup"):
                return
            for fault in faults:
                if isinstance(fault, CloseAfterwards):
                    yield 0.0, Abort() if fault.code is None else Close(fault.code)
        except GeneratorExit:
            if attempt.outcome == "running":
                attempt.outcome = "client_closed"
                fail()
            raise

    def _refuse(self, fault: HttpError) -> Action:
        error = http_error(fault)
        self.attempt.outcome = f"error:{fault.code or fault.kind}"
        self.attempt.status = fault.status
        frame = error.frame()
        if fault.headers:
            frame["headers"] = dict(fault.headers)
        return Send(self._named(frame))

    def _named(self, event: Json) -> Json:
        return event if self.lane is None else {**event, "stream_id": self.lane}

    def _send(
        self,
        plan: Plan,
        delay: float,
        commit: Callable[[Held], None],
        fail: Callable[[], None],
    ) -> Iterator[Step]:
        attempt = self.attempt
        sequence = 0
        done: list[Json] = []
        for planned in plan.events:
            for point in plan.points.pop(attempt.events, ()):
                action = self._strike(point, plan)
                ends = not isinstance(point, (Insert, Pause, Hold))
                if ends:
                    fail()
                yield delay, action
                delay = 0.0
                if ends:
                    return
            event = planned.event
            terminal = planned.terminal
            if self.interrupted and not terminal:
                event, terminal = self._interruption(plan, done), True
            if event["type"] == "response.output_item.done":
                done.append(event["item"])
            if not planned.private or event["type"] == "keepalive":
                event = {**event, "sequence_number": sequence}
                sequence += 1
            if terminal:
                self._finish(plan, event, commit)
            attempt.events += not planned.private
            attempt.response_id = self.id
            wait = delay + self.core.latency.output(planned.tokens)
            delay = 0.0
            yield wait, Send(self._named(event))
            if terminal:
                return

    def _strike(self, point: Point, plan: Plan) -> Action:
        attempt = self.attempt
        if isinstance(point, Insert):
            return point.what
        if isinstance(point, Pause):
            return Hang(point.seconds)
        if isinstance(point, Hold):
            return Wait(point.gate)
        if isinstance(point, ErrorFrame):
            response = {**plan.final, "status": "failed", "output": [], "usage": None}
            event = point.event(response, http=self.http)
            failed = event.get("type") == "response.failed"
            attempt.outcome = "failed" if failed else f"error:{point.code or point.kind}"
            attempt.status = None if failed else point.status
            self.last_event = event
            return Send(self._named(event))
        if isinstance(point.action, Close):
            attempt.outcome = f"closed:{point.action.code}"
        else:
            attempt.outcome = "aborted" if isinstance(point.action, Abort) else "hung"
        return point.action

    def _interruption(self, plan: Plan, done: list[Json]) -> Json:
        plan.status = "incomplete"
        plan.output = list(done)
        plan.final = {
            **plan.final,
            "status": "incomplete",
            "incomplete_details": {"reason": "interrupted"},
            "output": list(done),
        }
        shown = {**plan.final}
        if not self.core.flavour.lists_terminal_output:
            shown["output"] = []
        return {"type": "response.incomplete", "response": shown}

    def _finish(self, plan: Plan, event: Json, commit: Callable[[Held], None]) -> None:
        attempt = self.attempt
        attempt.outcome = "warmup" if self.warmup else plan.status
        attempt.status = 200
        self.last_event = event
        attempt.usage = event["response"].get("usage")
        output = tuple(output_item(value) for value in plan.output)
        body = attempt.body
        held = Held(
            response_id=self.id,
            credential=self.credential,
            items=(*self.transcript, *output),
            output=output,
            response=plan.final,
            stored=self.core.flavour.stores and body.get("store") is not False,
            warmup=self.warmup,
            connection=attempt.connection,
            prompt=self.prompt,
        )
        self.core.shelf.put(held)
        if self.conversation is not None:
            self.core.shelf.converse(self.credential, self.conversation, held.items)
        commit(held)


def prepare(core: Provider, attempt: Attempt, credential: str, prior: Held | None) -> Response:
    """Check the attempt's body against the rules. Raises ``ApiError``."""
    body = attempt.body
    check_parameters(body, frame=attempt.transport == "ws", flavour=core.flavour)
    received = input_items(
        body.get("input"), attempt.input_texts, core.issued_kinds, core.issued_ids.keys()
    )
    given = resolve_references(received, lambda name: core.shelf.item(credential, name))
    conversation = _conversation(body)
    before: tuple[Item, ...] = ()
    if prior is not None:
        before = prior.items
    elif conversation is not None:
        before = core.shelf.conversation(credential, conversation)
    warmup = body.get("generate") is False
    if not given and not before and not warmup and body.get("prompt") is None:
        raise ApiError(
            "Missing required parameter: 'input'.",
            code="missing_required_parameter",
            param="input",
        )
    trigger = any(held.kind == "compaction_trigger" for held in given[:-1])
    if trigger:
        raise ApiError("A 'compaction_trigger' must be the last input item.", param="input")
    transcript = (*before, *given)
    check_transcript(transcript, generates=not warmup, require_outputs=core.limits.require_outputs)
    return Response(
        core,
        attempt,
        credential=credential,
        transcript=transcript,
        given=given,
        conversation=conversation,
    )


def _never_answers(faults: Sequence[RequestFault]) -> bool:
    """A request that breaks off before its first event asks nothing of the model."""
    return any(isinstance(fault, (Cut, ErrorFrame)) and fault.after == 0 for fault in faults)


def _conversation(body: Json) -> str | None:
    value = body.get("conversation")
    name = value.get("id") if isinstance(value, dict) else value
    return name if isinstance(name, str) else None


def visible(items: Sequence[Item]) -> list[Item]:
    """What the model is shown: a compaction made in this chain replaces what came before it.

    One that a client gave back stands where the client put it, after what it chose to keep.
    """
    out: list[Item] = []
    for held in items:
        if held.kind == "compaction" and held.made and not held.echoed:
            out = []
        if held.kind != "compaction_trigger":
            out.append(held)
    return out


def compaction_item(identifier: str, size: int) -> Json:
    return {
        "type": "compaction",
        "id": identifier,
        "encrypted_content": f"gAAAAACompacted{size:06d}{identifier[-24:]}",
    }


def http_error(fault: HttpError) -> ApiError:
    return ApiError(
        fault.message,
        status=fault.status,
        code=fault.code,
        param=fault.param,
        kind=fault.kind,
        headers=fault.headers,
    )
