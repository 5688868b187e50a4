"""The provider's own word on the prompt cache: asked for, and not again where that is refused.

A request may name a response to be compared with (``prompt_cache_options.comparison_response_id``,
GPT-5.6 and later); the answer then says whether the cache was hit, and if not, why. With the policy
``diagnostics`` each turn names the response of the anchor that it extends or was compared with.
What the client asks for itself stays as it is (docs/decisions/0017).
"""

from __future__ import annotations

import dataclasses
import json
import re

import msgspec
from msgspec import Raw

from engine.failures import Failure, Remedy
from engine.model import Kind
from engine.request import Request
from engine.turn import Turn

OPTIONS = "prompt_cache_options"
COMPARISON = "comparison_response_id"
REFUSED = "diagnostics_refused"
"""Why a turn was sent again without the question."""
_FIRST_VERSION = (5, 6)
_MAX_REFUSALS = 4096
_REFUSING = frozenset({400, 403, 404, 422})

_fields = msgspec.json.Decoder(dict[str, Raw])


class Diagnosis:
    """Asks, and remembers who refused to be asked: per tenant, upstream and model."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str, str | None], None] = {}

    def ask(self, turn: Turn) -> Request:
        """The turn's request with the question, or as it is. A turn asks once: what is sent again
        goes without, so that it cannot be refused for it."""
        request, call = turn.understood, turn.call
        anchor = turn.extended or (turn.plan.compared if turn.plan else None)
        asked_before, turn.asks = turn.asks is not None, False
        if (
            asked_before
            or not call.upstream.policy.diagnostics
            or turn.kind is not Kind.GENERATION
            or anchor is None
            or not anchor.response_id
            or (anchor.warmup and anchor.chain is None)  # it may have been answered here
            or not answers(request.text("model"))
            or self._key(turn) in self._refused
        ):
            return request
        asking = comparing(request, anchor.response_id)
        turn.asks = asking is not request
        return asking

    def refused(self, turn: Turn) -> None:
        """The question was the fault: this model is not asked again."""
        self._refused[self._key(turn)] = None
        if len(self._refused) > _MAX_REFUSALS:
            del self._refused[next(iter(self._refused))]

    @staticmethod
    def _key(turn: Turn) -> tuple[str, str, str | None]:
        return turn.call.tenant, turn.call.upstream.name, turn.understood.text("model")


def answers(model: str | None) -> bool:
    """Whether a model may be asked. One whose name tells no version has to be tried: deployments
    have names of their own."""
    if model is None:
        return False
    found = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    if found is None:
        return re.match(r"o\d", model) is None
    return (int(found[1]), int(found[2] or 0)) >= _FIRST_VERSION


def comparing(request: Request, response_id: str) -> Request:
    """The request with the comparison, all its other bytes as they are.

    The same request where the client compares by itself, or says of the cache what is no object.
    """
    question = b'"%b":%b' % (COMPARISON.encode(), json.dumps(response_id).encode())
    given = request.fields.get(OPTIONS)
    if given is None:
        options = b"{" + question + b"}"
    else:
        try:
            known = _fields.decode(given)
        except (msgspec.MsgspecError, RecursionError):
            return request
        if COMPARISON in known:
            return request
        head = bytes(given).rstrip()[:-1]
        options = head + (b"," if known else b"") + question + b"}"
    return dataclasses.replace(request, fields={**request.fields, OPTIONS: Raw(options)})


def is_refusal(failure: Failure, status: int = 0, *, continued: bool = True) -> bool:
    """Whether an error says that the question was its cause; backends word it freely.

    ``status`` is that of the HTTP answer, if there is one that means something. Where nothing is
    ``continued``, no response can be missing but the compared one.
    """
    told = failure.status if failure.has_status else status
    names_it = OPTIONS.encode() in failure.body or COMPARISON.encode() in failure.body
    misses_it = not continued and failure.remedy(continued=True) is Remedy.NOT_FOUND
    return (names_it or misses_it) and (told in _REFUSING or told in (0, 200))
