"""A turn's facts: what the wire did, and never what was said."""

import dataclasses
import json

import pytest
from msgspec import Raw

from engine import turn as turns
from engine.chain import Anchor, Chain, HeldItem, stage
from engine.decision import Plan
from engine.model import Kind, Mode, Policy, Reason, Status, UsageState
from engine.request import split
from engine.sessions import Scope
from engine.turn import Call, Turn, Upstream

KEY = b"k" * 32


def call(body, **more):
    given = {"turn_id": "t1", "received_at": 10.0, "received_mono": 1.0, "tenant": "t", **more}
    return Call(body=body, upstream=Upstream("up", "https://h/v1", Policy()), **given)


def body(*items, **fields):
    return json.dumps({"model": "m", "input": list(items), **fields}).encode()


def made(text=None, **more):
    text = body({"role": "user", "content": "secretword"}) if text is None else text
    return Turn(call(text), split(text), Scope(("t", "up", "s")), session="s", **more)


def end(turn, type_="response.completed", **response):
    event = {"type": type_, "response": {"id": "r1", "status": "x", **response}}
    turn.fold.feed(json.dumps(event).encode())
    return turn


def facts(turn):
    return turns.facts(turn, key=KEY, ended_at=12.0, ended_mono=3.0)


@pytest.mark.parametrize(("base", "ws"), [("http://h/v1", "ws://h/v1/responses"), ("https://h", "wss://h/responses")])  # fmt: skip
def test_an_upstream_has_an_address_on_both_wires(base, ws):
    up = Upstream("u", base)
    assert (up.http_url, up.ws_url) == (base + "/responses", ws)


TRIGGER = {"type": "compaction_trigger"}


@pytest.mark.parametrize(
    ("text", "compaction", "kind"),
    [
        (body(generate=False), False, Kind.WARMUP), (body(generate=True), False, Kind.GENERATION),
        (body("a"), True, Kind.COMPACTION), (body("a", TRIGGER), False, Kind.COMPACTION),
        (body(TRIGGER, "a"), False, Kind.GENERATION), (body("compaction_trigger"), False, Kind.GENERATION),
        (body({"type": "message", "content": "compaction_trigger"}), False, Kind.GENERATION),
        (b'{"input":[{"type":"compaction_trigger","type":"x"}]}', False, Kind.GENERATION),
    ],
)  # fmt: skip
def test_the_kind_of_a_turn(text, compaction, kind):
    assert turns.kind_of(split(text), call(text, compaction=compaction)) is kind


@pytest.mark.parametrize(("fields", "understood"), [({}, True), ({"background": False}, True), ({"background": True}, False), ({"conversation": "c"}, False), ({"stream_id": "s"}, False)])  # fmt: skip
def test_what_the_engine_does_not_understand_is_known(fields, understood):
    assert turns.is_understood(split(body(**fields))) == understood


@pytest.mark.parametrize(
    ("terminal", "more", "status"),
    [
        ("response.completed", {}, Status.COMPLETED), ("response.incomplete", {}, Status.INCOMPLETE),
        ("response.failed", {}, Status.FAILED), (None, {}, Status.ERROR),
        ("response.completed", {"lost": "idle"}, Status.ERROR),
        ("response.completed", {"gone": True}, Status.CLIENT_CLOSED),
        ("response.completed", {"refused": True, "gone": True}, Status.REFUSED),
        (None, {"http_status": 429}, Status.RATE_LIMITED),
        (None, {"error_code": "insufficient_quota"}, Status.RATE_LIMITED),
    ],
)  # fmt: skip
def test_the_status_follows_the_end_and_not_the_plan(terminal, more, status):
    turn = made(**more)
    assert facts(end(turn, terminal) if terminal else turn).status is status


@pytest.mark.parametrize(
    ("error", "code"),
    [({"code": "c"}, "c"), ({"type": "t"}, "t"), ({"code": "my secret words"}, None), ({"code": "é"}, None),
     ({"code": 5}, None), (None, None), ({"code": "x" * 99}, "x" * 64)],
)  # fmt: skip
def test_an_error_code_is_a_word_and_never_a_message(error, code):
    assert facts(end(made(), "response.failed", error=error)).error_code == code


def test_a_turn_tells_the_digest_that_it_has_left():
    assert facts(end(made())).baseline_digest is None
    assert "02" == facts(end(made(answered=b"\x02"))).baseline_digest


def test_a_refused_turn_has_no_usage():
    usage = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    assert facts(end(made(), usage=usage)).usage.input_tokens == 5
    assert facts(end(made(refused=True), usage=usage)).usage.state is UsageState.MISSING


def test_the_facts_tell_the_wire_and_no_content():
    text = body({"role": "user", "content": "secretword"}, instructions="secretword", store=False,
                reasoning={"effort": "low"}, service_tier="flex", prompt_cache_key="k")  # fmt: skip
    chain = Chain("c1", "conn", b"h", 0.0, 0.0)
    old = Anchor("a", "r0", "s", {}, (), b"\x01", 1, 0.0, 1)
    turn = made(text, mode=Mode.WS_INCREMENTAL, reason=Reason.OK, chain=chain, extended=old,
                plan=Plan((), Reason.OK, old), epoch=(2, 3), attempts=1)  # fmt: skip
    told = facts(end(turn, service_tier="default"))
    assert (told.chain, told.connection, told.epoch, told.epoch_turn) == ("c1", "conn", 2, 3)
    assert (told.prefix_digest, told.baseline_items, told.eligible) == ("01", 0, True)
    assert (told.reasoning_effort, told.service_tier, told.store) == ("low", "default", False)
    assert (told.duration_ms, told.items_total, told.bytes_total) == (2000.0, 1, len(text))
    assert "secretword" not in str(dataclasses.asdict(told))


@pytest.mark.parametrize(("fields", "effort", "store"), [({}, None, True), ({"reasoning": {"effort": 5}, "store": "x"}, None, True), ({"reasoning": "low", "store": True}, None, True)])  # fmt: skip
def test_what_a_client_left_out_is_the_providers_default_or_unknown(fields, effort, store):
    told = facts(made(body(**fields)))
    assert (told.reasoning_effort, told.store) == (effort, store)


def test_a_body_that_could_not_be_split_is_a_turn_all_the_same():
    turn = Turn(call(b"{"), None, Scope(("t", "up", None)))
    told = facts(turn)
    assert (told.items_total, told.store, told.model, told.bytes_total) == (None, None, None, 1)
    assert told.eligible is False
    with pytest.raises(AssertionError):
        _ = turn.understood


@pytest.mark.parametrize(("reason", "word"), [(Reason.EPOCH_RESET, "manual"), (Reason.OK, None)])
def test_the_word_of_a_reset_stands_only_beside_its_reason(reason, word):
    plan = Plan((), Reason.EPOCH_RESET, reset_reason="manual")
    assert facts(made(reason=reason, plan=plan)).epoch_reset_reason == word


def test_sessions_with_joined_names_have_keys_of_their_own():
    assert turns.session_key(KEY, "a:b", "u", "c") != turns.session_key(KEY, "a", "u", "b:c")
    assert turns.session_key(KEY, "a", "bu", "c") != turns.session_key(KEY, "ab", "u", "c")


def test_an_anchored_request_is_expanded_by_the_clients_own_spelling():
    held = HeldItem(Raw(b'{"a": 1}'), received=True, echo=Raw(b'{"a":1}'))
    anchor = Anchor("a", "r0", "s", {}, (held,), b"", 1, 0.0, 1)
    text = body("new", previous_response_id="r0")
    full = turns.expand(split(text), anchor)
    assert [bytes(raw) for raw in full.items] == [b'{"a":1}', b'"new"']
    assert "previous_response_id" not in full.fields
    turn = Turn(call(text), full, Scope(("t", "up", "s")), anchored=True)
    assert facts(turn).bytes_total == len(b'{"model":"m","input":[{"a":1},"new"]}')


@pytest.mark.parametrize(
    ("text", "code"),
    [(b'{"error":{"code":"c","type":"t"}}', "c"), (b'{"error":{"code":null,"type":"t"}}', "t"),
     (b'{"error":null}', None), (b"[]", None), (b"{", None), (b'{"error":{"code":5}}', None),
     (b"[" * 5000, None), (b'{"error":["x"]}', None)],
)  # fmt: skip
def test_the_code_of_an_error_body_is_read_if_there_is_one(text, code):
    assert turns.error_body_code(text) == code


def test_time_never_runs_backwards():
    assert made().since(0.5) == 0.0


def test_a_field_that_stays_as_it_was_is_digested_once(monkeypatch):
    worked_out = []
    value_digest = turns.digests.value_digest

    def counted(key, raw):
        worked_out.append(bytes(raw))
        return value_digest(key, raw)

    monkeypatch.setattr(turns.digests, "value_digest", counted)
    scope, told = Scope(("t", "up", "s")), []
    for tools in ([{"name": "a"}], [{"name": "a"}], [{"name": "b"}], None):
        given = {} if tools is None else {"tools": tools}
        request = split(body("x", **given))
        staged = stage(request.items, dict(request.fields), None)
        turn = end(Turn(call(request.body), request, scope, session="s", staged=staged))
        told.append(facts(turn).tools_digest)
    assert (told[0], None) == (told[1], told[3])
    assert told[1] != told[2]
    assert [b'[{"name": "a"}]', b'[{"name": "b"}]'] == worked_out
