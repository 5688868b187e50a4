"""The question that Warmline adds to a request, and what comes of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.demo.provider.faults import HttpError
from app.demo.provider.oracle import same_transcript
from engine import diagnosis, failures
from engine.diagnosis import COMPARISON, OPTIONS, REFUSED, answers, comparing, is_refusal
from engine.model import Mode, Policy, Reason, Status
from engine.request import changed_fields, split
from tests.support.loopback import Stack
from tests.support.provider import Now, make_core, user

LONG = "x" * 8_000
NEW = "gpt-5.6-sol"
FIRST: dict[str, Any] = {"model": NEW, "store": False, "stream": True, "input": [user(LONG)]}


# --- the bytes --------------------------------------------------------------------------------


def asked(body: bytes) -> dict[str, Any]:
    request = comparing(split(body), "resp_1")
    frame = request.frame(None, None, keep_stream=True)
    decoded: dict[str, Any] = json.loads(frame)
    return decoded


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, '{"comparison_response_id":"resp_1"}'),
        ("{}", '{"comparison_response_id":"resp_1"}'),
        ("{ }", '{ "comparison_response_id":"resp_1"}'),
        ('{"ttl": "12h" }', '{"ttl": "12h" ,"comparison_response_id":"resp_1"}'),
        ('{"comparison_response_id": "mine"}', '{"comparison_response_id": "mine"}'),
        ('{"comparison_response_id":null}', '{"comparison_response_id":null}'),
        ("null", "null"),
        ("[1]", "[1]"),
        ('"x"', '"x"'),
    ],
)
def test_the_question_is_added_and_the_clients_own_bytes_stay(options, expected):
    given = "" if options is None else f'"prompt_cache_options": {options},'
    request = comparing(split(f'{{{given}"model":"m","input":"hi"}}'.encode()), "resp_1")
    assert expected == bytes(request.fields[OPTIONS]).decode()


def test_a_request_that_asks_by_itself_is_the_same_request():
    request = split(b'{"prompt_cache_options":{"comparison_response_id":"mine"},"input":"hi"}')
    assert comparing(request, "resp_1") is request


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
options_of_clients = st.dictionaries(
    st.sampled_from(["ttl", "mode", COMPARISON, "é", ""]), json_values, max_size=4
)


@given(options_of_clients, st.sampled_from([None, 1]), st.text(max_size=8))
def test_all_but_the_question_means_what_it_meant(options, indent, response_id):
    body = {"model": "m", "prompt_cache_options": options, "input": "hi"}
    before = split(json.dumps(body, indent=indent).encode())
    now = comparing(before, response_id)
    expected = options if COMPARISON in options else {**options, COMPARISON: response_id}
    assert expected == json.loads(bytes(now.fields[OPTIONS]))
    assert [] == changed_fields(before.fields, now.fields, "strict")
    rest = {name: raw for name, raw in now.fields.items() if name != OPTIONS}
    assert rest == {name: raw for name, raw in before.fields.items() if name != OPTIONS}


@pytest.mark.parametrize(
    ("model", "may"),
    [
        ("gpt-5.6", True),
        ("gpt-5.10-mini", True),
        ("openai/gpt-6-sol", True),
        ("my-deployment", True),
        ("gpt-5.5", False),
        ("gpt-5", False),
        ("gpt-4o", False),
        ("o3-mini", False),
        (None, False),
    ],
)
def test_a_model_is_asked_unless_its_name_says_that_it_is_older(model, may):
    assert may == answers(model)


def error(status=None, **fields):
    frame: dict[str, Any] = {"type": "error", "error": fields}
    return failures.read(
        json.dumps(frame | ({} if status is None else {"status": status})).encode()
    )


@pytest.mark.parametrize(
    ("failure", "status", "refusal"),
    [
        (error(400, param="prompt_cache_options", message="Unknown parameter."), 0, True),
        (error(None, message="Unsupported parameter: prompt_cache_options"), 0, True),
        (failures.read(b'{"detail":"comparison_response_id is not known"}'), 400, True),
        (error(400, param="input", message="Bad."), 0, False),
        (error(429, message="prompt_cache_options were too many"), 0, False),
        (failures.read(b'{"detail":"prompt_cache_options"}'), 500, False),
    ],
)
def test_an_error_that_names_the_question_is_its_refusal(failure, status, refusal):
    assert refusal == is_refusal(failure, status)


# --- turns ------------------------------------------------------------------------------------


class Talk:
    def __init__(self, flavour: str = "openai", *, model: str = NEW, **policy: Any) -> None:
        self.now = Now()
        self.core = make_core(flavour, now=self.now)
        self.stack = Stack(self.core, Policy(**{"diagnostics": True, **policy}))
        self.body = FIRST | {"model": model}
        if policy.get("continuation") == "store":
            self.body.pop("store")

    async def turn(self, text: str | None = None, **fields: Any) -> str | None:
        """The provider's word of it, as it is recorded."""
        if text is not None:
            self.body = {**self.body, "input": [*self.body["input"], user(text)]}
        self.body = {**self.body, **fields}
        events = await self.stack.turn(self.body)
        last = events[-1]
        assert "response.completed" == last.get("type"), last
        output = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        self.body = {**self.body, "input": [*self.body["input"], *output]}
        held = self.core.held(last["response"]["id"])
        assert same_transcript(held.items, self.body["input"])
        return self.stack.last.provider_miss_reason

    @property
    def compared(self) -> Any:
        return (self.core.log[-1].body.get(OPTIONS) or {}).get(COMPARISON)


@pytest.mark.parametrize(
    ("continuation", "mode"),
    [("websocket", Mode.WS_INCREMENTAL), ("store", Mode.HTTP_INCREMENTAL)],
)
async def test_a_turn_is_compared_with_the_response_that_it_extends(continuation, mode):
    it = Talk(continuation=continuation)
    assert (None, None) == (await it.turn(), it.compared)
    assert "cache_hit" == await it.turn("two")
    assert mode == it.stack.last.mode
    assert it.stack.facts[0].response_id == it.compared
    assert "cache_hit" == await it.turn("three")
    assert it.stack.facts[1].response_id == it.compared


async def test_a_turn_that_goes_in_full_is_compared_with_what_its_reason_is_about():
    it = Talk()
    await it.turn()
    assert "tools_changed" == await it.turn("two", tools=[{"type": "function", "name": "f"}])
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == (
        it.stack.last.mode,
        it.stack.last.reason,
    )
    assert it.stack.facts[0].response_id == it.compared


async def test_a_cache_that_went_cold_meanwhile_is_told_of_by_the_provider_alone():
    it = Talk()
    await it.turn()
    it.now.advance(31 * 60)
    assert "cache_expired" == await it.turn("two")
    assert Mode.WS_INCREMENTAL == it.stack.last.mode


async def test_a_response_that_the_provider_has_forgotten_is_not_found():
    it = Talk()
    await it.turn()
    it.core.shelf.prompt = lambda *_: None  # type: ignore[method-assign]
    assert "comparison_response_not_found" == await it.turn("two")


async def test_a_prompt_too_short_for_the_cache_is_told_as_unavailable():
    it = Talk()
    it.body = it.body | {"input": [user("short")]}
    await it.turn()
    assert "unavailable" == await it.turn("two")


async def test_the_answer_reaches_the_client_with_the_providers_word():
    it = Talk()
    await it.turn()
    body = {**it.body, "input": [*it.body["input"], user("two")]}
    *_, last = await it.stack.turn(body)
    assert {"type": "cache_hit"} == last["response"]["prompt_cache_diagnostics"]


async def test_what_the_client_asks_itself_is_left_alone_and_recorded():
    it = Talk()
    await it.turn()
    options = {COMPARISON: "resp_of_the_client"}
    assert "comparison_response_not_found" == await it.turn("two", prompt_cache_options=options)
    assert ("resp_of_the_client", Mode.WS_INCREMENTAL) == (it.compared, it.stack.last.mode)


@pytest.mark.parametrize(
    ("policy", "model"),
    [
        ({"diagnostics": False}, NEW),
        ({"continuation": "observe"}, NEW),
        ({"continuation": "off"}, NEW),
        ({}, "gpt-5.5"),
    ],
)
async def test_nothing_is_asked_unless_it_is_wanted_and_the_model_answers(policy, model):
    it = Talk(model=model, **policy)
    await it.turn()
    assert None is await it.turn("two")
    assert all(OPTIONS not in attempt.body for attempt in it.core.log)


@pytest.mark.parametrize(("flavour", "model"), [("codex", NEW), ("azure", "my-old-deployment")])
async def test_a_turn_that_is_refused_for_the_question_goes_once_more_without_it(flavour, model):
    it = Talk(flavour, model=model)
    await it.turn()
    assert None is await it.turn("two")
    assert (Status.COMPLETED, Mode.WS_FULL, Reason.CONNECTION_LOST, REFUSED, 2) == (
        it.stack.last.status,
        it.stack.last.mode,
        it.stack.last.reason,
        it.stack.last.fallback_reason,
        it.stack.last.attempts,
    )
    await it.turn("three")
    assert (Mode.WS_INCREMENTAL, 1, None) == (
        it.stack.last.mode,
        it.stack.last.attempts,
        it.compared,
    )


async def test_over_http_a_refused_question_costs_one_full_turn():
    it = Talk(continuation="store")
    refusal = HttpError(
        400, "Unsupported parameter: prompt_cache_options", kind="invalid_request_error"
    )
    it.core.faults.on_request(refusal, when=lambda attempt: OPTIONS in attempt.body, times=None)
    await it.turn()
    await it.turn("two")
    assert (Mode.HTTP_FULL, "diagnostics_refused", 2) == (
        it.stack.last.mode,
        it.stack.last.fallback_reason,
        it.stack.last.attempts,
    )
    await it.turn("three")
    assert (Mode.HTTP_INCREMENTAL, 1) == (it.stack.last.mode, it.stack.last.attempts)


@pytest.mark.parametrize("continuation", ["websocket", "store"])
async def test_a_full_turn_whose_compared_response_is_missing_is_sent_without_the_question(
    continuation,
):
    it = Talk(continuation=continuation)
    missing = HttpError(400, "Response not found.", "previous_response_not_found")
    it.core.faults.on_request(missing, when=lambda attempt: OPTIONS in attempt.body, times=None)
    await it.turn()
    it.body["instructions"] = "another"
    await it.turn("two")
    assert (Status.COMPLETED, False, REFUSED, 2) == (
        it.stack.last.status,
        it.stack.last.mode.incremental,
        it.stack.last.fallback_reason,
        it.stack.last.attempts,
    )


async def test_a_refusal_holds_for_its_model_alone():
    it = Talk()
    it.core.faults.on_request(
        HttpError(400, "prompt_cache_options?", kind="invalid_request_error"),
        when=lambda attempt: OPTIONS in attempt.body and attempt.body["model"] == NEW,
        times=None,
    )
    await it.turn()
    await it.turn("two")
    await it.turn("three", model="gpt-6-sol")
    assert "cache_hit" == await it.turn("four")
    await it.turn("five", model=NEW)
    assert 1 == it.stack.last.attempts


async def test_beyond_the_most_refusals_the_oldest_is_asked_once_more(monkeypatch):
    monkeypatch.setattr(diagnosis, "_MAX_REFUSALS", 1)
    it = Talk("codex")
    attempts = []
    await it.turn()
    for at, model in enumerate((NEW, "gpt-6-sol", "gpt-6-sol", NEW)):
        await it.turn(str(at), model=model)
        attempts.append(it.stack.last.attempts)
    assert [2, 2, 1, 2] == attempts


async def test_a_question_of_the_clients_own_that_is_refused_is_the_clients_to_know_of():
    it = Talk("codex")
    await it.turn()
    body = {
        **it.body,
        "input": [*it.body["input"], user("two")],
        "prompt_cache_options": {COMPARISON: "x"},
    }
    (last,) = await it.stack.turn(body)
    assert "prompt_cache_options" in last["error"]["message"]
    assert (400, 1) == (it.stack.last.http_status, it.stack.last.attempts)


async def test_a_turn_that_is_sent_again_for_another_cause_asks_no_more():
    it = Talk()
    await it.turn()
    it.core.faults.on_request(
        HttpError(400, "Previous response not found.", "previous_response_not_found", param="x")
    )
    assert None is await it.turn("two")
    assert (Reason.PREVIOUS_RESPONSE_NOT_FOUND, 2, None) == (
        it.stack.last.reason,
        it.stack.last.attempts,
        it.compared,
    )
