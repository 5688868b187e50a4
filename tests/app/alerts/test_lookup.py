import pytest

from app.alerts.config import Config, read
from app.alerts.lookup import find, from_file
from app.alerts.store import create_rule
from app.errors import AppError
from app.ledger.database import prepare
from app.settings import load
from tests.support.alerts import make_rule
from tests.support.databases import migrated
from tests.support.rows import START_MS

RULE = 'signal = "break_rate"\nthreshold = 0.5\n'


@pytest.fixture
def engine(tmp_path):
    opened = prepare(migrated(tmp_path / "ledger.db"))
    yield opened
    opened.dispose()


def config(tmp_path, toml: str = "") -> Config:
    path = tmp_path / "warmline.toml"
    path.write_text(toml)
    return read(load(config=path, environ={}))


def refused(call, *arguments) -> str:
    with pytest.raises(AppError) as caught:
        call(*arguments)
    return str(caught.value)


def test_what_the_settings_file_says_now_comes_before_what_is_stored(tmp_path, engine):
    create_rule(engine, make_rule(name="breaks"), START_MS)
    written = config(tmp_path, "[alerts.rules.breaks]\n" + RULE)
    assert ("file-breaks", 0.5) == (
        find("breaks", written, engine).id,
        find("breaks", written, engine).threshold,
    )
    assert "rule-1" == find("breaks", config(tmp_path), engine).id


def test_a_stored_rule_is_found_by_name_and_by_id(tmp_path, engine):
    create_rule(engine, make_rule(id="rule_9", name="Two words"), START_MS)
    for named in ("Two words", "rule_9"):
        assert "rule_9" == find(named, config(tmp_path), engine).id


def test_what_is_not_found_is_told_with_what_there_is(tmp_path, engine):
    assert "Name a .toml file" in refused(find, "x", config(tmp_path), engine)
    create_rule(engine, make_rule(name="b"), START_MS)
    written = config(tmp_path, "[alerts.rules.a]\n" + RULE)
    assert "There are: a, b." in refused(find, "x", written, engine)


def test_a_file_holds_the_fields_of_one_rule_or_one_table_of_settings(tmp_path, engine):
    path = tmp_path / "mine.toml"
    path.write_text(RULE)
    assert ("mine", 0.5) == (from_file(path).name, from_file(path).threshold)
    assert "mine" == find(str(path), config(tmp_path), engine).name
    path.write_text("[alerts.rules.other]\n" + RULE)
    assert "other" == from_file(path).name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("signal = ", "is not valid TOML"),
        ("alerts = 1", "does not hold exactly one rule"),
        ("[alerts.receivers.a]\nurl = 'x'", "does not hold exactly one rule"),
        ("[alerts.rules.a]\nx = 1\n[alerts.rules.b]\nx = 1", "does not hold exactly one rule"),
        ("[alerts.rules]\na = 1", "must be a table"),
        ("signal = 'break_rate'", "threshold is missing"),
    ],
)
def test_a_file_that_holds_no_rule_is_refused(tmp_path, text, said):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert said in refused(from_file, path)
    assert "mine.toml" in refused(from_file, path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    assert "cannot be read (FileNotFoundError)" in refused(from_file, tmp_path / "no.toml")
