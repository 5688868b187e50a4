"""``freeze``: an old tool output counts as the one that the model has seen (DESIGN 4.5)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from app.demo.provider.faults import ErrorFrame, abort
from app.demo.provider.replies import function_call
from engine.model import DivergenceClass, Mode, Nature, Policy, Reason
from tests.support.frozen_oracle import same_under
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

FREEZE = Policy(freeze=("_meta",))
META = {"tokens_left": 41_200}
CONTINUED = (Mode.WS_INCREMENTAL, Reason.OK)
BROKEN = (Mode.WS_FULL, Reason.PREFIX_MISMATCH)
Json = dict[str, Any]


def text(**members: Any) -> str:
    return json.dumps(members)


class Harness:
    """Calls a tool in each turn; the metadata hangs on the newest result alone."""

    def __init__(self, policy: Policy = FREEZE, **call: Any) -> None:
        calls = [[function_call("f", {"n": n}, f"call_{n}")] for n in range(9)]
        self.stack = Stack(make_core(replies=calls), policy)
        self.call = call
        self.body: Json = {"model": MODEL, "stream": True, "input": [user("Go.")]}
        if policy.continuation != "store":
            self.body["store"] = False

    @property
    def history(self) -> list[Json]:
        return self.body["input"]

    @property
    def outputs(self) -> list[Json]:
        return [item for item in self.history if item["type"] == "function_call_output"]

    async def turn(self, **call: Any) -> tuple[Mode | None, Reason | None]:
        """Send the history, take in the answer, run its tool."""
        events = await self.stack.turn(json.dumps(self.body).encode(), **{**self.call, **call})
        if events[-1].get("type") == "response.completed":
            self.history.extend(events[-1]["response"]["output"])
            self.run_tool()
        return self.stack.last.mode, self.stack.last.reason

    def run_tool(self) -> None:
        for output in self.outputs:
            members = json.loads(output["output"])
            members.pop("_meta", None)
            output["output"] = text(**members)
        name = self.history[-1]["call_id"]
        gave = seen(len(self.outputs))
        self.history.append({"type": "function_call_output", "call_id": name, "output": gave})

    @property
    def anchors(self) -> list[Any]:
        return list(self.stack.driver.sessions.scope(("tenant", "default", "s")).anchors.values())

    @property
    def held(self) -> list[Json]:
        """What the provider holds after the last turn."""
        held = self.stack.core.held(self.stack.last.response_id).items
        return [json.loads(item.text) for item in held]

    def shown(self) -> list[str]:
        return [item["output"] for item in self.held if item["type"] == "function_call_output"]

    @property
    def sent(self) -> Json:
        return self.stack.core.log[-1].body


def seen(number: int) -> str:
    return text(_meta=META, rows=number)


async def test_a_moved_key_breaks_the_prefix_unless_it_is_frozen():
    loose, frozen = Harness(Policy()), Harness()
    for harness in (loose, frozen):
        await harness.turn()
        await harness.turn()
        assert (text(rows=0), seen(1)) == tuple(o["output"] for o in harness.outputs)
    assert BROKEN == await loose.turn()
    assert ("/output/_meta", Nature.REMOVED) == (
        loose.stack.last.evidence.path,
        loose.stack.last.evidence.nature,
    )
    assert CONTINUED == await frozen.turn()
    assert frozen.stack.last.evidence is None


async def test_the_provider_holds_what_it_saw_and_gets_what_is_new_alone():
    harness = Harness()
    for _ in range(4):
        await harness.turn()
    assert [seen(0), seen(1), seen(2)] == harness.shown()
    assert ["function_call_output"] == [item["type"] for item in harness.sent["input"]]
    assert (1, 7, 6) == (
        harness.stack.last.items_sent,
        harness.stack.last.items_total,
        harness.stack.last.baseline_items,
    )


async def test_a_row_counts_the_old_outputs_that_differ_from_the_seen_ones():
    harness = Harness()
    counts = []
    for _ in range(5):
        await harness.turn()
        counts.append(harness.stack.last.frozen_items)
    assert [0, 0, 1, 2, 3] == counts
    for number, output in enumerate(harness.outputs[:2]):
        output["output"] = seen(number)
    assert CONTINUED == await harness.turn()
    assert 2 == harness.stack.last.frozen_items


async def test_a_row_without_the_setting_counts_none():
    harness = Harness(Policy())
    await harness.turn()
    harness.outputs[0]["metadata"] = {"ignored": "anyway"}
    await harness.turn()
    harness.outputs[0]["output"] = seen(0)
    assert CONTINUED == await harness.turn()
    assert 0 == harness.stack.last.frozen_items


async def test_each_spelling_is_measured_against_what_the_provider_holds():
    """A client that walks from one value to the next must not get away from the seen one."""
    harness = Harness()
    await harness.turn()
    await harness.turn()
    first = harness.outputs[0]
    for spelled in (text(rows=0), text(rows=0, _meta=1), text(_meta=[], rows=0), seen(0)):
        first["output"] = spelled
        assert CONTINUED == await harness.turn()
        assert seen(0) == harness.shown()[0]
        assert (spelled != seen(0)) == (harness.stack.last.frozen_items == len(harness.outputs) - 2)
    first["output"] = text(rows=0, _meta=1, more=1)
    assert BROKEN == await harness.turn()


async def test_the_ledger_proves_a_frozen_chain_as_any_other():
    harness = Harness()
    for _ in range(5):
        await harness.turn()
    facts = harness.stack.facts
    assert [None, *(one.baseline_digest for one in facts[:-1])] == [f.prefix_digest for f in facts]
    assert 5 == len({one.baseline_digest for one in facts})


async def test_what_goes_in_full_goes_as_the_client_sends_it_and_is_held_from_there_on():
    harness = Harness()
    await harness.turn()
    await harness.turn()
    harness.body["instructions"] = "Other ones."
    body = json.dumps(harness.body["input"])
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == await harness.turn()
    assert (json.loads(body), 0) == (harness.sent["input"], harness.stack.last.frozen_items)
    assert [text(rows=0), seen(1)] == harness.shown()
    harness.outputs[0]["output"] = seen(0)  # and what was seen before is the one that is frozen
    assert CONTINUED == await harness.turn()
    assert [text(rows=0), seen(1), seen(2)] == harness.shown()
    assert 2 == harness.stack.last.frozen_items


async def test_a_lost_connection_is_the_reason_and_not_what_is_frozen():
    harness = Harness()
    await harness.turn()
    await harness.turn()
    harness.stack.sockets.opened[-1].drop()
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == await harness.turn()
    assert harness.stack.last.evidence is None
    assert [text(rows=0), seen(1)] == harness.shown()


async def test_a_new_epoch_sends_the_clients_own_outputs():
    harness = Harness()
    await harness.turn()
    await harness.turn()
    got = await harness.turn(epoch_reset="summarize")
    assert (Mode.WS_FULL, Reason.EPOCH_RESET) == got
    assert ([text(rows=0), seen(1)], 0) == (harness.shown(), harness.stack.last.frozen_items)
    assert CONTINUED == await harness.turn()


@pytest.mark.parametrize("fault", [abort(after=2), ErrorFrame("server_error", 500)])
async def test_an_output_of_a_turn_that_failed_was_not_seen(fault):
    harness = Harness()
    await harness.turn()
    harness.stack.core.faults.on_request(fault)
    await harness.turn()
    harness.history[-1]["output"] = text(rows="again")
    mode, _ = await harness.turn()
    assert mode is Mode.WS_FULL
    assert [text(rows="again")] == harness.shown()
    assert 0 == harness.stack.last.frozen_items


async def test_the_newest_output_is_sent_as_it_is():
    harness = Harness()
    await harness.turn()
    harness.history[-1]["output"] = text(rows=0, _meta="new")
    assert CONTINUED == await harness.turn()
    assert [text(rows=0, _meta="new")] == harness.shown()
    assert 0 == harness.stack.last.frozen_items


async def test_a_client_that_names_the_response_is_continued_over_what_was_frozen():
    """And where the connection is gone, all goes as the client said it last."""
    harness = Harness(transport="ws", socket="c")
    for _ in range(3):
        await harness.turn()
    whole, named = harness.body, harness.stack.last.response_id
    harness.body = {**whole, "input": [harness.history[-1]], "previous_response_id": named}
    assert CONTINUED == await harness.turn()
    assert ([seen(0), seen(1), seen(2)], 1) == (harness.shown(), harness.stack.last.frozen_items)
    named = harness.stack.last.response_id
    harness.body = {**whole, "input": [harness.history[-1]], "previous_response_id": named}
    harness.stack.sockets.opened[-1].drop()
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == await harness.turn()
    assert [text(rows=0), seen(1), seen(2)] == harness.shown()[:3]
    assert 0 == harness.stack.last.frozen_items


async def test_a_fork_goes_back_to_the_output_that_its_own_chain_has_seen():
    harness = Harness()
    await harness.turn()
    await harness.turn()
    fork = json.loads(json.dumps(harness.body))
    fork["input"][-1]["output"] = text(rows="fork", _meta=META)
    await harness.turn()
    harness.body, main = fork, harness.body
    assert BROKEN == await harness.turn()
    main["input"][-1]["output"] = text(rows="fork", _meta=META)
    harness.body = main
    assert CONTINUED == await harness.turn()
    assert [seen(0), seen(1), text(rows="fork", _meta=META)] == harness.shown()
    assert 2 == harness.stack.last.frozen_items


async def test_beyond_the_byte_budget_only_what_the_client_said_last_is_known():
    harness = Harness()
    harness.stack = Stack(make_core(replies=[_call(n) for n in range(9)]), FREEZE)
    for _ in range(3):
        await harness.turn()
    for anchor in harness.anchors:
        anchor.items.condense(b"k")
    harness.outputs[1]["output"] = seen(1)  # as it was sent, and the one before it as it was then
    assert CONTINUED == await harness.turn()
    assert ([seen(0), seen(1), seen(2)], 1) == (harness.shown(), harness.stack.last.frozen_items)
    for anchor in harness.anchors:
        anchor.items.condense(b"k")
    assert BROKEN == await harness.turn()  # nobody can say any more what of it is the seen one
    assert [text(rows=0), text(rows=1), text(rows=2), seen(3)] == harness.shown()
    assert 0 == harness.stack.last.frozen_items


# --- the other continuations ----------------------------------------------------------------------


async def test_a_kept_response_is_continued_over_what_is_frozen():
    loose = Harness(Policy(continuation="store"))
    frozen = Harness(Policy(continuation="store", freeze=("_meta",)))
    for harness in (loose, frozen):
        await harness.turn()
        await harness.turn()
        assert (Mode.HTTP_INCREMENTAL, Reason.OK) == await harness.turn()
    # Without the setting it hangs on the first response, and all after that is sent once more.
    assert (3, 1) == (loose.stack.last.items_sent, frozen.stack.last.items_sent)
    assert ([text(rows=0), seen(1)], 0) == (loose.shown(), loose.stack.last.frozen_items)
    assert ([seen(0), seen(1)], 1) == (frozen.shown(), frozen.stack.last.frozen_items)
    facts = frozen.stack.facts
    assert facts[1].baseline_digest == facts[2].prefix_digest


async def test_an_observed_turn_says_what_would_have_been_frozen_and_changes_nothing():
    loose = Harness(Policy(continuation="observe"))
    frozen = Harness(Policy(continuation="observe", freeze=("_meta",)))
    told = []
    for harness in (loose, frozen):
        for _ in range(3):
            await harness.turn()
        last = harness.stack.last
        told.append((last.mode, last.shadow_mode, last.shadow_reason, last.frozen_items))
        assert [text(rows=0), seen(1)] == harness.shown()
    assert [
        (Mode.HTTP_FULL, Mode.WS_FULL, Reason.PREFIX_MISMATCH, 0),
        (Mode.HTTP_FULL, Mode.WS_INCREMENTAL, Reason.OK, 1),
    ] == told


async def test_where_nothing_is_continued_nothing_is_frozen():
    harness = Harness(Policy(continuation="off", freeze=("_meta",)))
    for _ in range(3):
        await harness.turn()
    assert ([text(rows=0), seen(1)], 0) == (harness.shown(), harness.stack.last.frozen_items)


# --- evidence -------------------------------------------------------------------------------------


async def broken(policy: Policy, change: Any) -> Any:
    harness = Harness(policy)
    for _ in range(3):
        await harness.turn()
    change(harness)
    await harness.turn()
    return harness.stack.last


async def test_evidence_looks_past_what_is_frozen():
    def change(harness: Harness) -> None:
        harness.outputs[1]["output"] = text(rows=7)

    last = await broken(FREEZE, change)
    told = last.evidence
    assert BROKEN == (last.mode, last.reason)
    assert (4, "/output/~", Nature.NUMBER) == (told.index, told.path[:9], told.nature)
    assert (DivergenceClass.EDITED, False) == (told.klass, told.further)
    # Without the policy the first difference is one that the policy would have set aside.
    assert "/output/_meta" == (await broken(Policy(), change)).evidence.path


async def test_the_fingerprint_of_a_break_is_the_same_whatever_moved_beside_it():
    def moved(harness: Harness) -> None:
        harness.outputs[1]["output"] = text(rows=7)

    def still(harness: Harness) -> None:
        harness.outputs[0]["output"] = seen(0)
        harness.outputs[1]["output"] = text(_meta=META, rows=7)

    prints = {(await broken(FREEZE, change)).evidence.fingerprint for change in (moved, still)}
    assert 1 == len(prints)


# --- any history ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_a_client_does_to_old_outputs_the_provider_holds_the_seen_ones(seed):
    """Every continued turn holds what was held and what is new; every full one what was sent."""
    chance = random.Random(seed)
    harness = Harness()
    harness.stack = Stack(make_core(replies=[_call(n) for n in range(30)]), FREEZE)
    held: list[Json] = []
    frozen = 0
    for _ in range(30):
        sent = json.loads(json.dumps(harness.history))
        same = len(held) > 0 and _is_extended(held, sent)
        mode, reason = await harness.turn()
        assert same == (mode is Mode.WS_INCREMENTAL), reason
        expected = [*held, *sent[len(held) :]] if same else sent
        assert expected == harness.held[: len(sent)]
        differing = sum(a != b for a, b in zip(held, sent, strict=False)) if same else 0
        assert differing == harness.stack.last.frozen_items
        frozen += differing
        held = harness.held
        for output in harness.outputs:
            if chance.random() < 0.3:
                output["output"] = _edited(chance, output["output"])
    assert frozen > 100


def _call(number: int) -> list[Json]:
    return [function_call("f", {}, f"call_{number}")]


def _edited(chance: random.Random, output: str) -> str:
    members = json.loads(output)
    if chance.random() < 0.02:
        members["rows"] = chance.random()
    members.pop("_meta", None)
    extra = {"_meta": chance.randint(0, 3)} if chance.random() < 0.7 else {}
    return text(**{**extra, **members}) if chance.random() < 0.5 else text(**{**members, **extra})


def _is_extended(held: list[Json], sent: list[Json]) -> bool:
    """By the oracle; the provider's own items come back as they are."""
    return len(held) < len(sent) and all(
        one == other or same_under(("_meta",), json.dumps(one), json.dumps(other))
        for one, other in zip(held, sent, strict=False)
    )
