"""When which fault strikes."""

import pytest

from app.demo.provider.connection import UpgradeRefused
from app.demo.provider.faults import AbortUpgrade, ErrorFrame, HangUpgrade, HttpError, RefuseUpgrade
from tests.support.provider import AUTH, events, make_core

BODY = '{"model":"m","input":"x"}'


def failed(connection):
    return events(connection)[0]["type"] == "error"


def test_without_more_the_next_request_only():
    core = make_core()
    connection = core.open_connection(AUTH)
    core.faults.on_request(ErrorFrame())
    assert [failed(connection) for _ in range(2)] == [True, False]


def test_so_many_times_or_always():
    core = make_core()
    connection = core.open_connection(AUTH)
    core.faults.on_request(ErrorFrame(), times=2)
    assert [failed(connection) for _ in range(3)] == [True, True, False]
    core.faults.on_request(ErrorFrame(), times=None)
    assert [failed(connection) for _ in range(3)] == [True, True, True]
    core.faults.clear()
    assert not failed(connection)


def test_by_index_of_the_request():
    core = make_core()
    connection = core.open_connection(AUTH)
    core.faults.on_request(ErrorFrame(), request=1)
    assert [failed(connection) for _ in range(3)] == [False, True, False]


def test_by_connection_and_by_index_on_it():
    core = make_core()
    first, second = core.open_connection(AUTH), core.open_connection(AUTH)
    core.faults.on_request(ErrorFrame(), connection=1, nth=1)
    assert [failed(c) for c in (first, second, first, second, second)] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_by_transport():
    core = make_core()
    connection = core.open_connection(AUTH)
    core.faults.on_request(HttpError(503), transport="http", times=2)
    assert not failed(connection)
    assert core.post(AUTH, BODY).status == 503
    assert core.post(AUTH, '{"model":"m","input":"x","stream":true}').status == 503
    assert core.post(AUTH, BODY).status == 200


def test_by_any_condition_on_the_request():
    core = make_core()
    core.faults.on_request(HttpError(500), when=lambda attempt: attempt.body["input"] == "bad")
    assert core.post(AUTH, BODY).status == 200
    assert core.post(AUTH, '{"model":"m","input":"bad"}').status == 500


def test_what_still_waits_is_counted():
    core = make_core()
    core.faults.on_request(ErrorFrame(), times=2)
    core.faults.on_upgrade(RefuseUpgrade(426))
    assert core.faults.pending == 2
    with pytest.raises(UpgradeRefused):
        core.open_connection(AUTH)
    assert core.faults.pending == 1


@pytest.mark.parametrize("status", [401, 403, 404, 426, 429, 500, 503])
def test_an_upgrade_can_be_refused_with_a_status_and_headers(status):
    core = make_core()
    core.faults.on_upgrade(RefuseUpgrade(status, headers=(("retry-after", "9"),), code="c"))
    with pytest.raises(UpgradeRefused) as refused:
        core.open_connection(AUTH)
    assert refused.value.reply.status == status
    assert ("retry-after", "9") in refused.value.reply.headers
    assert refused.value.reply.json()["error"]["code"] == "c"
    assert core.upgrades[0].status == status
    assert core.open_connection(AUTH).open


def test_a_refusal_may_have_no_body():
    core = make_core()
    core.faults.on_upgrade(RefuseUpgrade(426, message=None))
    with pytest.raises(UpgradeRefused) as refused:
        core.open_connection(AUTH)
    assert refused.value.reply.body == b""


def test_an_upgrade_by_index():
    core = make_core()
    core.faults.on_upgrade(RefuseUpgrade(426), upgrade=1)
    core.open_connection(AUTH)
    with pytest.raises(UpgradeRefused):
        core.open_connection(AUTH)
    core.open_connection(AUTH)
    assert [upgrade.status for upgrade in core.upgrades] == [101, 426, 101]


@pytest.mark.parametrize(("fault", "action"), [(AbortUpgrade(), "abort"), (HangUpgrade(), "hang")])
def test_an_upgrade_can_be_dropped_or_left_unanswered(fault, action):
    core = make_core()
    core.faults.on_upgrade(fault)
    with pytest.raises(UpgradeRefused) as refused:
        core.open_connection(AUTH)
    assert (refused.value.action, core.upgrades[0].status) == (action, None)


def test_an_upgrade_can_be_slow():
    core = make_core()
    core.faults.on_upgrade(HangUpgrade(2.5))
    assert core.open_connection(AUTH).connect_hang == 2.5
