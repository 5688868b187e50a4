"""The events of one response, in order, as a healthy or a bewitched provider would send them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .events import item_events, response_object
from .faults import (
    After,
    ConflictingOutput,
    Cut,
    DropDone,
    ErrorFrame,
    Hold,
    Incomplete,
    Insert,
    NoResponseId,
    Pause,
    RenameTerminal,
    RequestFault,
    ShuffleDone,
    TerminalOutput,
    Usage,
)
from .flavours import Flavour
from .wire import Json

Point = Cut | ErrorFrame | Insert | Pause | Hold


@dataclass(frozen=True, slots=True)
class Planned:
    event: Json
    tokens: int = 0
    """Output tokens generated before it."""
    private: bool = False
    """Sent between the standard events and not counted among them."""
    terminal: bool = False


@dataclass(slots=True)
class Plan:
    events: list[Planned]
    output: list[Json]
    """What the response leaves in the transcript."""
    final: Json
    """The response object of the terminal event, with the true output: what is stored."""
    status: str
    points: dict[int, list[Point]] = field(default_factory=dict)

    @property
    def standard(self) -> int:
        return sum(1 for planned in self.events if not planned.private)


def make_plan(
    body: Json,
    items: Sequence[Json],
    *,
    response_id: str,
    created_at: float,
    usage: Callable[[Sequence[Json]], Json],
    flavour: Flavour,
    faults: Sequence[RequestFault],
    private: Sequence[Json] = (),
    diagnosis: Json | None = None,
) -> Plan:
    """``usage`` counts the output items that it is given. ``diagnosis``: where it was asked for."""
    incomplete = _last(faults, Incomplete)
    output = list(items)
    status, details = "completed", None
    if incomplete is not None:
        status, details = "incomplete", {"reason": incomplete.reason}
        output = output[: incomplete.items]

    def response(state: str, listed: list[Json], counted: Json | None) -> Json:
        return response_object(
            body,
            response_id=response_id,
            created_at=created_at,
            status=state,
            output=listed,
            usage=counted,
        )

    begun = response("in_progress", [], None)
    final = response(status, output, usage(output))
    final["incomplete_details"] = details
    if diagnosis is not None:
        final["prompt_cache_diagnostics"] = diagnosis
    last = dict(final)
    if not flavour.lists_terminal_output:
        last["output"] = []
    events = [Planned({"type": "response.created", "response": begun})]
    if body.get("generate") is not False:
        events.append(Planned({"type": "response.in_progress", "response": begun}))
    for index, value in enumerate(output):
        events += [Planned(event, tokens) for tokens, event in item_events(value, index)]
    events.append(Planned({"type": f"response.{status}", "response": last}, terminal=True))
    plan = Plan(events, output, final, status)
    for fault in faults:
        _apply(plan, fault)
    plan.events = _with_private(plan.events, private)
    plan.points = _points(plan, faults)
    return plan


def _last(faults: Iterable[RequestFault], kind: type[Incomplete]) -> Incomplete | None:
    found = None
    for fault in faults:
        if isinstance(fault, kind):
            found = fault
    return found


def _apply(plan: Plan, fault: RequestFault) -> None:
    if isinstance(fault, Usage):
        _edit_terminal(plan, lambda response: _set_usage(response, fault.value))
    elif isinstance(fault, TerminalOutput):
        items = plan.output if fault.items is None else list(fault.items)
        _edit_terminal(plan, lambda response: {**response, "output": items})
    elif isinstance(fault, ConflictingOutput):
        items = _contradicted(plan.output)
        _edit_terminal(plan, lambda response: {**response, "output": items})
    elif isinstance(fault, DropDone):
        plan.events = [p for p in plan.events if not _is_done(p, fault.indices)]
    elif isinstance(fault, ShuffleDone):
        done = [p for p in plan.events if _is_done(p, None)]
        rest = [p for p in plan.events if not _is_done(p, None)]
        plan.events = [*rest[:-1], *reversed(done), rest[-1]]
    elif isinstance(fault, NoResponseId):
        plan.events = [replace(p, event=_without_id(p.event)) for p in plan.events]
    elif isinstance(fault, RenameTerminal):
        last = plan.events[-1]
        plan.events[-1] = replace(last, event={**last.event, "type": fault.name})


def _edit_terminal(plan: Plan, edit: Callable[[Json], Json]) -> None:
    last = plan.events[-1]
    plan.events[-1] = replace(last, event={**last.event, "response": edit(last.event["response"])})


def _set_usage(response: Json, value: Json | None) -> Json:
    if value is None:
        return {k: v for k, v in response.items() if k != "usage"}
    return {**response, "usage": value}


def _is_done(planned: Planned, indices: tuple[int, ...] | None) -> bool:
    event = planned.event
    if event["type"] != "response.output_item.done":
        return False
    return indices is None or event["output_index"] in indices


def _without_id(event: Json) -> Json:
    response = event.get("response")
    if not isinstance(response, dict):
        return event
    return {**event, "response": {k: v for k, v in response.items() if k != "id"}}


def _contradicted(output: list[Json]) -> list[Json]:
    """The same list with the last text changed, or one item more if there is no text."""
    items = copy.deepcopy(output)
    for value in reversed(items):
        for field_name in ("arguments", "input"):
            if isinstance(value.get(field_name), str):
                value[field_name] += " "
                return items
        content: Any = value.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part.get("text"), str):
                part["text"] += " (but not really)"
                return items
    return [*items, {"type": "message", "role": "assistant", "content": [], "status": "completed"}]


def _with_private(events: list[Planned], private: Sequence[Json]) -> list[Planned]:
    """Rate limits come before the first event, metadata behind it, a keep-alive before the end."""
    first, behind, late = [], [], []
    for event in private:
        planned = Planned(event, private=True)
        if event["type"] == "codex.rate_limits":
            first.append(planned)
        elif event["type"] == "keepalive":
            late.append(planned)
        else:
            behind.append(planned)
    return [*first, events[0], *behind, *events[1:-1], *late, events[-1]]


def _points(plan: Plan, faults: Iterable[RequestFault]) -> dict[int, list[Point]]:
    standard = [p.event["type"] for p in plan.events if not p.private]
    out: dict[int, list[Point]] = {}
    for fault in faults:
        if isinstance(fault, (Cut, ErrorFrame, Insert, Pause, Hold)):
            out.setdefault(_position(fault.after, standard), []).append(fault)
    return out


def _position(after: After, standard: Sequence[str]) -> int:
    """A number of events; a point beyond the response is one right before its terminal event."""
    before_terminal = len(standard) - 1
    if isinstance(after, str):
        if after not in standard:
            raise ValueError(f"the fault waits for {after!r}, which this response does not have")
        after = standard.index(after) + 1
    if after == -1:
        return before_terminal
    return min(after, before_terminal)
