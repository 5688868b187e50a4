import pytest

from tests.support.alerts import write
from tests.support.rows import START_MS
from tests.support.site import open_site

SECRET = "whsec_" + "c2VjcmV0" * 6
TOML = f"""
[alerts.receivers.ops]
url = "https://hooks.example.com/T000/CANARY-PATH"
secrets = ["{SECRET}"]
"""


@pytest.fixture
def alerting(tmp_path):
    """With a receiver ``ops`` in the settings file and a rule made on the page that tells it."""
    opened = open_site(tmp_path, toml=TOML)
    rule = {
        "name": "Mismatches",
        "signal": "mismatch_rate",
        "threshold": 0.2,
        "confidence": "raw",
        "window": "1m",
        "delay": 0,
        "min_turns": 1,
        "receivers": ["ops"],
    }
    opened.rule = opened.ask("POST", "/api/alerts/rules", rule, status=201)["rule"]

    def fire(bad: int = 3, good: int = 1) -> None:
        """A minute with so many turns passes, and is evaluated."""
        write(opened.engine, opened.web.alerts.now() + 10_000, bad=bad, good=good)
        opened.clock.advance(60)
        opened.web.alerts.evaluator.tick()

    assert START_MS == opened.web.alerts.now()
    opened.fire = fire
    yield opened
    opened.close()
