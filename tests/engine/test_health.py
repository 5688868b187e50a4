"""When WebSockets are not worth trying, and when they are again."""

from engine.health import Health
from engine.model import Policy, Reason

POLICY = Policy(max_losses=2, cooldown=60.0, rejected_cooldown=600.0)


def test_nothing_is_blocked_at_first():
    assert Health().blocked("t", "u", 0.0) is None


def test_a_rejected_upgrade_blocks_its_tenant_and_upstream_for_a_while():
    health = Health()
    health.rejected("t", "u", "426", POLICY, 100.0)
    assert health.blocked("t", "u", 699.9) == (Reason.WS_REJECTED, "426")
    assert health.blocked("t", "u", 700.0) is None
    assert health.blocked("x", "u", 100.0) is health.blocked("t", "x", 100.0) is None


def test_only_losses_in_a_row_block():
    health = Health()
    health.lost("t", "u", POLICY, 0.0)
    assert health.blocked("t", "u", 0.0) is None
    health.succeeded("t", "u")
    health.lost("t", "u", POLICY, 1.0)
    assert health.blocked("t", "u", 1.0) is None
    health.lost("t", "u", POLICY, 2.0)
    assert health.blocked("t", "u", 61.9) == (Reason.WS_UNAVAILABLE, "cooling_down")
    assert health.blocked("t", "u", 62.0) is None


def test_a_failed_probe_blocks_again_at_once():
    health = Health()
    for now in (0.0, 0.0, 100.0):
        health.lost("t", "u", POLICY, now)
    assert health.blocked("t", "u", 159.0) is not None


def test_success_without_a_history_is_nothing():
    health = Health()
    health.succeeded("t", "u")
    assert health.blocked("t", "u", 0.0) is None
