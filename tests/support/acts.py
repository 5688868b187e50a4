"""What happens in a step of a random conversation: turns, and what comes between and during them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from app.demo.provider.actions import Gate
from app.demo.provider.faults import Hold
from engine.driver import Event
from engine.model import Status
from tests.support import edits
from tests.support.agents import Agent
from tests.support.spellings import said

if TYPE_CHECKING:
    from tests.support.conversations import Conversations

Act = Callable[["Conversations", Agent], Awaitable[None]]


async def plain(run: Conversations, agent: Agent) -> None:
    run.let_speak(agent)
    fault = run.plant(agent)
    await run.turn(agent, fault=fault)


async def edited(run: Conversations, agent: Agent) -> None:
    """The history or the fields change, in one of the ways that clients do."""
    name = edits.change(agent, run.random, run.number())
    run.trace(f"  {name}")
    run.let_speak(agent)
    await run.turn(agent)


async def forked(run: Conversations, agent: Agent) -> None:
    twin = agent.twin(run.socket() if agent.socket else None)
    run.agents.append(twin)
    run.let_speak(twin)
    await run.turn(twin)


async def side_request(run: Conversations, agent: Agent) -> None:
    """A title or a summary: the same session, another prompt, or the same history."""
    side = agent.twin(agent.socket)
    side.anchor = None
    side.fields["instructions"] = "make a title"
    if run.random.random() < 0.6:
        side.history = []
    side.history.append(json.dumps(said(agent.client, "a title, please", run.number())))
    if edits.calls_without_output(side.history):
        return
    await run.turn(side)


async def warm_up(run: Conversations, agent: Agent) -> None:
    """Codex warms up a connection, then hangs its turn on it."""
    if agent.transport != "ws" or not agent.client.warms_up:
        return
    warm = agent.twin(agent.socket)
    warm.anchor = None
    if run.random.random() < 0.3:
        warm.history = []
    warm.fields["generate"] = False
    sent, answer = await run.begin(warm, kind="warmup")
    row_id = await run.end(warm, sent, answer)
    if row_id is not None and run.random.random() < 0.7:
        agent.anchor = (row_id, len(warm.history))
        run.let_speak(agent)
        anchoring, agent.anchoring = agent.anchoring, True
        await run.turn(agent)
        agent.anchoring = anchoring


async def compaction(run: Conversations, agent: Agent) -> None:
    """The history is replaced by what the provider, or a side request, made of it."""
    if not agent.client.typed or not agent.history:
        return
    if edits.calls_without_output(agent.history):
        return
    users = [text for text in agent.history if edits.is_user(text)]
    trigger = agent.twin(agent.socket)
    trigger.anchor = None
    trigger.history.append('{"type": "compaction_trigger"}')
    sent, answer = await run.begin(trigger, kind="compaction")
    if await run.end(trigger, sent, answer) is None:
        return
    agent.history = [*users[-2:], trigger.history[-1]]
    agent.anchor = None
    run.let_speak(agent)
    await run.turn(agent)


async def reset(run: Conversations, agent: Agent) -> None:
    """The caller ends the epoch, by the API or with the request itself."""
    run.let_speak(agent)
    name = agent.session or run.engine_session(agent)
    if name is None:
        return
    if run.random.random() < 0.5:
        run.reset(agent, name)
        await run.turn(agent)
    elif agent.session is not None and not (agent.anchoring and agent.anchor):
        run.judge.reset(agent.tenant, agent.scope, name)
        await run.turn(agent, epoch_reset="summarize")


async def reconnect(run: Conversations, agent: Agent) -> None:
    """The client's socket ends; it, or another transport of it, resumes."""
    if agent.socket is not None:
        run.close(agent.socket)
    run.let_speak(agent)
    await run.turn(agent)


async def left(run: Conversations, agent: Agent) -> None:
    """The client leaves in the middle of an answer: it is drained, or cut at once."""
    run.let_speak(agent)
    sent, answer = await run.begin(agent)
    if not answer.streamed:
        await run.end(agent, sent, answer)
        return
    events = answer.events
    assert events is not None
    for _ in range(run.random.randrange(1, 4)):
        await anext(events, None)
    if run.random.random() < 0.5:
        if agent.socket is not None and run.random.random() < 0.5:
            run.close(agent.socket)
        else:
            answer.client_left()
        async for _event in events:
            pass
    else:
        await events.aclose()  # type: ignore[attr-defined]
    run.conclude(sent, answer.turn_id, None)


async def left_early(run: Conversations, agent: Agent) -> None:
    """The client leaves before the first event, which comes late, too late, or is not awaited."""
    if run.twin is not None:
        return
    run.let_speak(agent)
    gate = Gate()
    run.core.faults.on_request(Hold(gate, after=0))
    await asyncio.sleep(0)  # what was given up is closed before the oracle looks
    sent, call = run.prepare(agent)
    running = asyncio.ensure_future(run.stack.driver.run(call))
    for _ in range(20):
        await asyncio.sleep(0)
    how = run.random.choice(("cancelled", "too late", "late"))
    if how == "cancelled":
        running.cancel()
    else:
        run.stack.driver.client_left(call.turn_id)
    if how == "late":
        gate.open()
    with suppress(asyncio.CancelledError):
        answer = await running
        async for _event in answer.events or nothing():
            pass
    run.conclude(sent, call.turn_id, None)


async def nothing() -> AsyncIterator[Event]:
    for event in ():
        yield event


async def thief(run: Conversations, agent: Agent) -> None:
    """Another tenant's response id is not found, and nothing is sent with it."""
    others = [a for a in run.agents if a.tenant != agent.tenant and a.anchor]
    if not others:
        return
    other = run.random.choice(others)
    thief = agent.twin(agent.socket)
    thief.anchoring, thief.anchor = True, (other.anchor[0], len(thief.history))
    run.let_speak(thief)
    sent, answer = await run.begin(thief)
    await run.end(thief, sent, answer, keeps=False)
    if answer.status == 200 and answer.streamed and run.stack.last.status is Status.COMPLETED:
        run.report.faults.append(f"tenant: {answer.turn_id}: another's response was continued")


async def in_parallel(run: Conversations, agent: Agent) -> None:
    """One, two or three more turns while the first one streams."""
    run.let_speak(agent)
    if run.regime.name == "epochs":
        await run.turn(agent)  # which turn is the last of an epoch is a race otherwise
        return
    if agent.transport == "http":
        return  # such an answer is complete before anything else can be sent
    gate = Gate()
    run.core.faults.on_request(Hold(gate, after=run.random.choice((1, 2, -1))))
    sent, answer = await run.begin(agent)
    held = answer.streamed and not gate.opened
    for _ in range(run.random.choice((1, 1, 2, 3)) if held else 0):
        if run.random.random() < 0.5:
            other = agent.twin(run.socket() if agent.socket else None)
        else:
            other = run.random.choice(run.agents[-7:])
            if other is agent or (other.socket and other.socket == agent.socket):
                continue
        if run.random.random() < 0.1:
            await reset_meanwhile(run, run.random.choice((agent, other)))
        run.let_speak(other)
        await run.turn(other)
    gate.open()
    await run.end(agent, sent, answer)


async def reset_meanwhile(run: Conversations, agent: Agent) -> None:
    """The epoch ends while turns are under way."""
    name = agent.session or run.engine_session(agent)
    if name is not None:
        run.reset(agent, name)


ACTS: tuple[tuple[Act, int], ...] = (
    (plain, 56),
    (edited, 14),
    (in_parallel, 9),
    (forked, 5),
    (side_request, 4),
    (warm_up, 3),
    (compaction, 2),
    (reset, 2),
    (reconnect, 2),
    (left, 3),
    (left_early, 2),
    (thief, 1),
)
"""With the weight of each."""
