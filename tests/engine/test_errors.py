"""The engine's errors say whose fault they are, and nothing of the content."""

from engine.errors import (  # fmt: skip
    ConnectFailed,
    ConnectionLost,
    EngineError,
    NotKept,
    SessionBusy,
    SessionClosed,
    TurnFailed,
    UnreadableRequest,
    UpgradeRejected,
    UpstreamError,
)


def test_each_error_has_its_place():
    assert issubclass(UpstreamError, EngineError)
    for kind in (ConnectFailed, ConnectionLost, UpgradeRejected):
        assert issubclass(kind, UpstreamError)
    for kind in (NotKept, SessionBusy, SessionClosed, TurnFailed, UnreadableRequest):
        assert issubclass(kind, EngineError)
        assert not issubclass(kind, UpstreamError)


def test_an_error_tells_what_happened():
    assert str(ConnectFailed("refused")) == "the upstream could not be reached: refused"
    lost = ConnectionLost(1006, sent=False)
    assert (lost.code, lost.sent, "1006" in str(lost)) == (1006, False, True)


def test_a_refused_upgrade_keeps_its_body_out_of_its_text():
    error = UpgradeRejected(401, (("a", "b"),), b"secret")
    assert (error.status, error.headers, error.body) == (401, [("a", "b")], b"secret")
    assert "secret" not in str(error)


def test_a_failed_turn_keeps_its_body_out_of_its_text():
    error = TurnFailed(429, "slow_down", b"secret", 7.0)
    assert (error.status, error.code, error.body, error.retry_after) == (
        429, "slow_down", b"secret", 7.0
    )  # fmt: skip
    assert str(error) == "the turn was answered with status 429 (slow_down)"
    assert "no code" in str(TurnFailed(502, None, b""))
