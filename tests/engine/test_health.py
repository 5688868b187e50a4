"""When WebSockets are not worth trying, and when they are again."""

from engine.health import Health, Storage
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


def test_an_upstream_that_keeps_nothing_is_left_alone_for_a_while():
    storage = Storage()
    assert storage.unsupported("t", "u", "refused", POLICY, 100.0)
    assert storage.blocked("t", "u", 699.9) == "refused"
    assert storage.blocked("t", "u", 700.0) is None
    assert storage.blocked("x", "u", 100.0) is storage.blocked("t", "x", 100.0) is None


def test_it_is_worth_one_warning_until_it_keeps_something_again():
    storage = Storage()
    heard = [storage.unsupported(tenant, "u", "c", POLICY, 0.0) for tenant in ("t", "t", "x")]
    assert heard == [True, False, False]
    assert storage.unsupported("t", "other", "c", POLICY, 0.0)
    storage.supported("t", "u")
    assert storage.unsupported("t", "u", "c", POLICY, 0.0)


def test_a_response_that_is_kept_does_not_lift_what_was_seen_of_ignored_anchors():
    storage = Storage()
    storage.unsupported("t", "u", "anchor_ignored", POLICY, 0.0)
    storage.supported("t", "u")
    assert (storage.blocked("t", "u", 599.9), storage.blocked("t", "u", 600.0)) == (
        "anchor_ignored",
        None,
    )
    assert not storage.unsupported("t", "u", "anchor_ignored", POLICY, 700.0)
    storage.unsupported("t", "u", "refused", POLICY, 1400.0)
    storage.supported("t", "u")
    assert storage.blocked("t", "u", 1400.0) is None


def test_it_counts_the_tenants_and_forgets_those_whose_time_is_over():
    storage = Storage()
    storage.unsupported("t", "u", "c", POLICY, 0.0)
    storage.unsupported("x", "u", "c", POLICY, 300.0)
    assert (storage.count("u", 300.0), storage.count("u", 600.0), storage.count("v", 0.0)) == (
        2,
        1,
        0,
    )
    storage.unsupported("y", "u", "c", POLICY, 700.0)
    assert len(storage._until) == 2
