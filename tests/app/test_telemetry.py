import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.ledger.journal.journal import JournalState
from app.ledger.probe import Reading
from app.ledger.writer import WriterState
from app.telemetry import CONTINUATION, MODELS, Telemetry
from tests.support.rows import make_row, unknown_usage


def samples(telemetry):
    """Every sample by name and labels."""
    found = {}
    for family in text_string_to_metric_families(telemetry.render().decode()):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def observed(*rows):
    telemetry = Telemetry("1.2.3")
    telemetry.observe(rows)
    return samples(telemetry)


def value(found, name, **labels):
    return found.get((name, tuple(sorted(labels.items()))))


MODEL = "gpt-5.6-sol"


def test_turns_are_counted_by_how_they_were_sent():
    found = observed(make_row(), make_row(), make_row(mode=None, reason=None, model=None))
    labels = {"transport": "sse", "status": "completed", "kind": "generation"}
    ok = labels | {"model": MODEL, "mode": "ws_incremental", "reason": "ok"}
    none = labels | {"model": "unknown", "mode": "unknown", "reason": "unknown"}
    assert value(found, "warmline_requests_total", **ok) == 2
    assert value(found, "warmline_requests_total", **none) == 1


def test_the_mismatch_rate_can_be_computed_from_two_counters():
    found = observed(
        make_row(reason="prefix_mismatch", mode="ws_full"),
        make_row(),
        make_row(eligible=False),
        make_row(status="error", reason="prefix_mismatch"),
        make_row(kind="warmup", reason="prefix_mismatch"),
        make_row(mode=None, reason="prefix_mismatch"),
    )
    assert value(found, "warmline_eligible_requests_total", model=MODEL) == 2
    assert value(found, "warmline_mismatched_requests_total", model=MODEL) == 1


def test_the_classes_of_tokens_add_up():
    found = observed(
        make_row(cache_write_tokens=60, reasoning_tokens=20),
        make_row(cache_write_tokens=999_999, reasoning_tokens=999_999),
    )
    classes = {
        name: value(found, "warmline_input_tokens_total", model=MODEL, **{"class": name})
        for name in ("cached", "cache_write", "uncached")
    }
    assert classes == {"cached": 1800, "cache_write": 160, "uncached": 40}
    outputs = {
        name: value(found, "warmline_output_tokens_total", model=MODEL, **{"class": name})
        for name in ("text", "reasoning")
    }
    assert outputs == {"text": 30, "reasoning": 70}


def test_unknown_usage_is_counted_and_in_no_sum():
    found = observed(unknown_usage())
    name = "warmline_usage_unknown_requests_total"
    for field in ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens"):
        assert value(found, name, model=MODEL, field=field) == 1
    assert not any(key[0] == "warmline_input_tokens_total" for key in found)


def test_time_to_first_token_is_in_seconds_by_mode_and_cache():
    found = observed(make_row(ttft_ms=420.0), make_row(ttft_ms=None))
    labels = {"model": MODEL, "mode": "ws_incremental", "cache": "hit"}
    name = "warmline_time_to_first_token_seconds"
    assert value(found, f"{name}_sum", **labels) == pytest.approx(0.42)
    assert value(found, f"{name}_count", **labels) == 1
    assert value(found, f"{name}_bucket", le="0.5", **labels) == 1
    assert value(found, f"{name}_bucket", le="0.3", **labels) == 0


def test_clients_cannot_fill_the_memory_with_models():
    telemetry = Telemetry("1")
    telemetry.observe(make_row(model=f"m{n}") for n in range(MODELS + 10))
    models = {dict(labels).get("model") for name, labels in samples(telemetry)}
    assert len(models - {None}) == MODELS + 1
    assert "other" in models


def test_no_label_tells_of_a_session_a_key_or_a_response():
    row = make_row(
        session="canary-s",
        session_key="canary-k",
        tenant="canary-t",
        response_id="canary-r",
        prompt_cache_key="canary-p",
        fingerprint="canary-f",
        error_code="canary-e",
    )
    telemetry = Telemetry("1")
    telemetry.observe([row])
    assert b"canary" not in telemetry.render()


def test_passed_requests_are_counted_by_class_of_status():
    telemetry = Telemetry("1")
    telemetry.passed("default", 204)
    telemetry.passed("default", 502)
    found = samples(telemetry)
    name = "warmline_passed_requests_total"
    assert value(found, name, upstream="default", code_class="2xx") == 1
    assert value(found, name, upstream="default", code_class="5xx") == 1


def test_the_writers_counters_are_read_with_each_scrape():
    telemetry = Telemetry("1")
    state = None
    telemetry.watch_writer(lambda: state)
    assert not any("ledger" in name for name, _ in samples(telemetry))
    state = WriterState(
        queued=1, written=2, duplicates=3, dropped=4, rejected=5, kept=7, failures=6, retrying=True,
        last_error=None, on_disk=7,
        journal=JournalState(
            bytes=8, recovered=9, process_ended=1, missed=11, torn=12, last_error=None
        ),
        waiting_since=13_000,
    )  # fmt: skip
    found = samples(telemetry)
    assert value(found, "warmline_journal_bytes") == 8
    assert value(found, "warmline_journal_recovered_total") == 10
    assert value(found, "warmline_journal_missed_total") == 11
    assert value(found, "warmline_journal_torn_total") == 12
    assert value(found, "warmline_ledger_queued_rows") == 1
    assert value(found, "warmline_ledger_rows_on_disk") == 7
    assert value(found, "warmline_ledger_retrying") == 1
    assert value(found, "warmline_ledger_waiting_since_seconds") == 13
    assert value(found, "warmline_ledger_rows_written_total") == 2
    assert value(found, "warmline_ledger_rows_dropped_total") == 4
    assert value(found, "warmline_ledger_rows_rejected_total") == 5
    assert value(found, "warmline_ledger_rows_kept") == 7
    assert value(found, "warmline_ledger_write_errors_total") == 6


def test_whether_the_ledger_can_be_read_is_told_once_it_is_known():
    telemetry = Telemetry("1")
    reading = None
    telemetry.watch_reading(lambda: reading)
    assert not any("readable" in name for name, _ in samples(telemetry))
    for readable in (True, False):
        reading = Reading(readable=readable, since=None, error=None)
        assert value(samples(telemetry), "warmline_ledger_readable") == readable


def test_the_version_is_a_label():
    assert value(observed(), "warmline_build_info", version="1.2.3") == 1


def test_two_registries_do_not_mix():
    one, other = Telemetry("1"), Telemetry("1")
    one.observe([make_row()])
    assert b"ws_incremental" in one.render()
    assert b"ws_incremental" not in other.render()


def test_alerts_are_shown_by_rule_severity_and_state():
    telemetry = Telemetry("1")
    telemetry.watch_alerts(
        lambda: [("cold", "error", "firing", 2), ("cold", "error", "inactive", 0)]
    )
    text = telemetry.render().decode()
    assert 'warmline_alerts{rule="cold",severity="error",state="firing"} 2.0' in text
    assert 'warmline_alerts{rule="cold",severity="error",state="inactive"} 0.0' in text


def test_alerts_that_cannot_be_read_are_left_out_and_everything_else_is_there(caplog):
    def broken():
        raise OSError("postgresql://user:hunter2@host")

    telemetry = Telemetry("1")
    telemetry.watch_alerts(broken)
    text = telemetry.render().decode()
    assert "warmline_build_info" in text
    assert "warmline_alerts{" not in text
    assert "alerts are missing in the metrics: OSError" in caplog.text
    assert "hunter2" not in caplog.text


def test_deliveries_are_counted_by_receiver_and_outcome():
    telemetry = Telemetry("1")
    telemetry.delivered("ops", "delivered")
    telemetry.delivered("ops", "http_5xx")
    telemetry.delivered("ops", "http_5xx")
    text = telemetry.render().decode()
    assert 'warmline_webhook_deliveries_total{outcome="http_5xx",receiver="ops"} 2.0' in text


def test_the_counters_of_continuation_can_be_asked_for_by_upstream():
    telemetry = Telemetry("1.2.3")
    telemetry.observe([make_row(upstream="a", reason="ok", items_sent=1, items_total=9)])
    unknown = telemetry.continuation()("a")
    assert (1, 9, None, None) == tuple(
        unknown[name] for name in ("requests", "full_items", "unsupported_bases", "chains")
    )
    telemetry.watch_continuation(lambda: [("a", 1, 5), ("b", 0, 0)])
    of = telemetry.continuation()
    assert {*CONTINUATION, "unsupported_bases", "chains"} == set(of("a"))
    assert (1, 5) == (of("a")["unsupported_bases"], of("a")["chains"])
    assert {0} == set(of("b").values())


def test_continuation_is_counted_per_upstream():
    sent = {"items_sent": 1, "items_total": 9, "reason": "ok", "mode": "http_incremental"}
    again = {"attempts": 2, "mode": "http_full"}
    found = observed(
        make_row(upstream="a", **sent),
        make_row(upstream="a", **sent | {"items_sent": 2}),
        make_row(upstream="a", reason="no_baseline", mode="http_full"),
        make_row(upstream="a", reason="previous_response_not_found", **again),
        make_row(upstream="a", reason="store_unsupported", **again),
        make_row(upstream="a", reason="store_unsupported", mode="http_full", attempts=1),
        make_row(upstream="a", status="rate_limited", reason="no_baseline", mode="http_full"),
        make_row(upstream="a", kind="warmup"),
        make_row(upstream="a", mode=None),
        make_row(upstream="b", reason="client_anchored", mode="http_incremental"),
    )
    counted = {
        name: value(found, f"warmline_continuation_{name}_total", upstream="a")
        for name in CONTINUATION
    }
    assert counted == {
        "requests": 7,
        "continuations": 2,
        "delta_items": 3,
        "full_items": 18,
        "fallbacks": 2,
        "errors": 1,
    }
    assert value(found, "warmline_continuation_requests_total", upstream="b") == 1
    assert value(found, "warmline_continuation_continuations_total", upstream="b") is None


def test_the_engines_state_is_shown_with_each_scrape():
    telemetry = Telemetry("1")
    telemetry.watch_continuation(lambda: [("a", 1, 12)])
    found = samples(telemetry)
    assert value(found, "warmline_continuation_unsupported_bases", upstream="a") == 1
    assert value(found, "warmline_continuation_chains", upstream="a") == 12
