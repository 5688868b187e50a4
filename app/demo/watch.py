"""What the demo watches: its own alert rules, and the receiver that they tell.

The rules are written as a user writes them, in the settings file (docs/alerts.md).
"""

from __future__ import annotations

import json

from app.demo.receiver import HOST, Receiver

WINDOW, EVERY, DELAY = 60, 5, 2
"""Seconds. One round of the agent ``notes`` is enough to fire, and some rounds later it resolves:
both within three minutes. The made-up history ends before the first window begins."""


def tables(receiver: Receiver, pace: float) -> str:
    """TOML. ``pace`` scales the times of the short rules as it scales the agents' pauses."""
    window, every, delay = times(pace)
    return f"""
webhook_private_hosts = ["{HOST}"]

[alerts.receivers.demo]
kind = "webhook"
url = {json.dumps(receiver.url)}
secrets = [{json.dumps(receiver.secret)}]

[alerts.rules.notes]
name = "Agent notes: prefix mismatches"
description = "The sample agent takes a block out of old tool results, in two rounds of seven."
severity = "error"
signal = "mismatch_rate"
filter = "source=sample&q=notes-"
window = "{window}s"
every = "{every}s"
delay = "{delay}s"
threshold = 0.05
recover = 0.02
min_turns = 5
receivers = ["demo"]

[alerts.rules.errors]
name = "Errors of sample agents"
signal = "error_rate"
filter = "source=sample"
group_by = ["model"]
window = "5m"
every = "15s"
delay = "{delay}s"
threshold = 0.05
recover = 0.02
receivers = ["demo"]

[alerts.rules.real]
name = "Prefix mismatches of real traffic"
description = "It has no data until a client of yours goes through the gateway."
signal = "mismatch_rate"
window = "15m"
every = "1m"
threshold = 0.2
recover = 0.1
receivers = ["demo"]
"""


def times(pace: float) -> tuple[int, int, int]:
    """Window, step and delay in seconds; the window is a multiple of the step."""
    every = max(1, round(EVERY * pace))
    steps = max(2, round(WINDOW * pace / every))
    return steps * every, every, max(1, round(DELAY * pace))
