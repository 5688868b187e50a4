"""The events of one response in order, and the points at which a fault strikes."""

import pytest

from app.demo.provider.faults import abort, garbage
from app.demo.provider.flavours import flavour
from app.demo.provider.plan import make_plan
from app.demo.provider.replies import message


def plan(*faults, kind="openai", private=(), **body):
    return make_plan(
        {"model": "m", **body},
        [message("hi")],
        response_id="resp_1",
        created_at=0,
        usage=lambda items: {"items": len(items)},
        flavour=flavour(kind),
        faults=faults,
        private=private,
    )


def test_exactly_the_last_event_is_terminal():
    events = plan().events
    assert [p.terminal for p in events] == [False] * (len(events) - 1) + [True]


def test_what_is_stored_has_the_output_whatever_is_shown():
    made = plan(kind="codex")
    assert made.events[-1].event["response"]["output"] == []
    assert made.final["output"] == made.output == [message("hi")]
    assert made.final["usage"] == {"items": 1}


@pytest.mark.parametrize(
    ("after", "position"),
    [(0, 0), (3, 3), (-1, 8), (99, 8), ("response.created", 1)],
)
def test_where_a_fault_strikes(after, position):
    assert list(plan(abort(after=after)).points) == [position]


def test_faults_at_one_point_keep_their_order():
    first, second = garbage("a", after=2), garbage("b", after=2)
    assert plan(first, second).points == {2: [first, second]}


def test_private_events_do_not_move_the_points():
    made = plan(abort(after=-1), private=[{"type": "codex.rate_limits"}, {"type": "keepalive"}])
    assert list(made.points) == [8]
    assert made.standard == 9
    assert len(made.events) == 11
