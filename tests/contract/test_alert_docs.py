"""docs/alerts.md says what the code does."""

import re
import tomllib
from pathlib import Path

from app.alerts import payload_json
from app.alerts.fitting import Room
from app.alerts.groups import MAX_GROUPS
from app.alerts.retry import SCHEDULE
from app.alerts.rules import NoData, Rule, duration, parse
from app.alerts.signals import CATALOGUE, Lack
from app.alerts.states import GONE_AFTER, State
from tests.support.markdown import section, table
from tests.support.messages import make_message

FILE = Path(__file__).resolve().parents[2] / "docs" / "alerts.md"
PLAIN = parse({"name": "plain", "signal": "mismatch_rate", "threshold": 0.2}, id="plain")
WORKED_OUT = {"name", "signal", "threshold", "weight", "confidence", "recover"}


def written(value: object) -> str:
    """A default as it would be written in TOML."""
    return f'`"{value}"`' if isinstance(value, str) else f"`{str(value).lower()}`"


def test_every_field_of_a_rule_is_documented_with_its_default() -> None:
    documented = {row[0].strip("`"): row[1] for row in table(section("alerts.md", "Rules"))}
    assert list(documented) == list(PLAIN.as_dict())
    for name, value in PLAIN.as_dict().items():
        if name not in WORKED_OUT:
            assert documented[name] == written(value), name


def test_the_signals_are_documented_as_the_catalogue_has_them() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table(section("alerts.md", "Signals"))[:7]}
    assert rows == {
        signal.value: [
            info.unit,
            "high" if info.rises else "low",
            info.part,
            info.whole,
            ", ".join(f"`{weight}`" for weight in info.weights),
            ", ".join(f"`{confidence}`" for confidence in info.confidences),
        ]
        for signal, info in CATALOGUE.items()
    }


def test_every_lack_state_and_policy_is_documented() -> None:
    signals, states = section("alerts.md", "Signals"), section("alerts.md", "States")
    first_cells = [row[0].strip("`") for row in table(signals)[7:] + table(states)]
    assert first_cells == [*Lack, *State, *NoData]
    assert GONE_AFTER == 3


def test_every_field_of_a_message_is_documented() -> None:
    body = payload_json.build(make_message(), Room(1_000, 3_000))
    documented = {
        name
        for row in table(section("alerts.md", "Delivery"))
        for name in re.findall(r"`([a-z_]+)`", row[0])
    }
    assert documented == set(body["data"])


def test_the_example_is_a_rule_that_is_accepted() -> None:
    found = re.search(r"```toml\n(.*?)```", FILE.read_text(), re.DOTALL)
    assert found is not None
    (name, given), *_ = tomllib.loads(found[1])["alerts"]["rules"].items()
    rule = parse({"name": name} | given, id=name)
    assert isinstance(rule, Rule)
    assert rule.group_by == ("model",)


def test_numbers_in_the_text_are_those_of_the_code() -> None:
    text = FILE.read_text()
    assert f"at most {MAX_GROUPS} groups" in text
    waits = [duration(int(wait)) for wait in SCHEDULE]
    assert waits == ["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "1d"]
    assert "after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h" in text
