"""Responses that the upstream keeps are chains without a connection (DESIGN 4.7).

Whether a turn may be stored, which kept response it can hang on, and how an upstream shows that it
does not keep responses, or did not read on from one. Pure: nothing here sends.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from engine import decision
from engine.chain import Anchor, Chain, Epoch
from engine.model import ColdCause, Policy, Reason
from engine.request import Request, changed_fields
from engine.stream import Fold

_TRUE, _FALSE, _NULL = Raw(b"true"), Raw(b"false"), Raw(b"null")


class _Response(msgspec.Struct):
    previous_response_id: str | None = None
    store: bool | None = None


class _Event(msgspec.Struct):
    response: _Response | None = None


_response = msgspec.json.Decoder(_Response)
_event = msgspec.json.Decoder(_Event)


def covers(patterns: Sequence[str], model: str | None) -> bool:
    """Whether a model is one of the policy's; ``*`` at an end stands for anything."""
    if not patterns:
        return True
    name = model or ""
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in patterns
    )


def may_store(request: Request, policy: Policy) -> bool:
    """A client that says ``store: false`` is obeyed, unless the operator's policy overrules it.

    What is no boolean is the upstream's to refuse, and never becomes a wish to store.
    """
    raw = request.fields.get("store", _NULL)
    return raw in (_NULL, _TRUE) or (policy.force_store and raw == _FALSE)


def storing(request: Request) -> Request:
    """The request with ``store: true``; the same one where it says so itself."""
    if request.value("store") is True:
        return request
    return dataclasses.replace(request, fields={**request.fields, "store": _TRUE})


def decide(
    anchors: Sequence[Anchor],
    request: Request,
    policy: Policy,
    epoch: Epoch,
    asker: decision.Asker,
    *,
    account: tuple[tuple[str, str], ...] = (),
) -> decision.Plan:
    """``ok`` with the kept anchor to hang on as ``compared``; else why the request goes in full."""
    for anchor in sorted(anchors, key=lambda one: (-len(one.items), -one.born)):
        if (
            anchor.kept is not None
            and anchor.kept.account == account
            and anchor.cold is None
            and len(anchor.items) < len(request.items)
            and anchor.matched(request.items, policy.freeze) == len(anchor.items)
            and not changed_fields(anchor.fields, request.fields, policy.tools)
        ):
            return decision.Plan((), Reason.OK, anchor)
    plan = decision.decide(anchors, request, policy, epoch, asker)
    if plan.reason is not Reason.CONNECTION_LOST or plan.compared is None:
        return plan
    if plan.compared.cold is ColdCause.REJECTED:
        return replace(plan, reason=Reason.PREVIOUS_RESPONSE_NOT_FOUND, fallback=None)
    if plan.compared.kept is None:
        return replace(plan, reason=Reason.STORE_UNSUPPORTED, fallback="not_kept")
    if plan.compared.cold is None:
        return replace(plan, fallback="handshake_changed")
    return plan


def says_stored(fold: Fold) -> bool:
    """Whether the finished response says of itself that it is kept."""
    if fold.last_response is None or not fold.response_id:
        return False
    try:
        return _response.decode(fold.last_response).store is True
    except (msgspec.MsgspecError, RecursionError):
        return False


def names_two(former: Anchor | None, fold: Fold, chain: Chain | None) -> bool:
    """Whether an id of this turn stands for two responses: its own, or that of ``former``.

    A connection knows its latest response by itself, whatever was given that id elsewhere.
    """
    if former is None:
        return False
    return former.response_id == fold.response_id or (chain is None and former.renamed)


def hangs_on(data: bytes, *, event: bool) -> str | None:
    """The response that an answer says it continues: the invariant rests on it.

    An upstream that does not know ``previous_response_id`` ignores it, and would answer the delta
    alone. ``data`` is the answer's first event, or with ``event`` False its whole body.
    """
    try:
        response = _event.decode(data).response if event else _response.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return None if response is None else response.previous_response_id


_STORE = re.compile(rb"\bstore\b", re.IGNORECASE)


def refuses_to_store(status: int, body: bytes) -> bool:
    """Whether an error says that ``store: true`` was the fault; backends word it freely."""
    return status in (400, 403, 404, 422) and _STORE.search(body[:4096]) is not None
