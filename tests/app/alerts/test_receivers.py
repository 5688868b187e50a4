import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.alerts.endpoints import Endpoint, Kind, UnreadableError
from app.alerts.guard import AddressRefusedError, Guard
from app.alerts.receiver_file import parse_file
from app.alerts.receivers import Receiver, Receivers
from app.alerts.sealed import Seal
from app.alerts.tables import receivers as table
from app.errors import AppError, SettingsError
from app.keys import Keys
from app.ledger.database import open_engine
from tests.support.clock import ManualClock
from tests.support.receiver import OTHER_SECRET, SECRET
from tests.support.rows import START_MS

URL = "https://a.example/path-canary"
THIRD_SECRET = "whsec_" + "QUJD" * 10
ADDRESSES = {"a.example": ["93.184.216.34"], "inside.example": ["10.0.0.7"]}
FILE = {"ops": {"url": "https://a.example/file-canary", "secrets": [SECRET]}}


both = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest) -> str:
    """Most of this is not about the database."""
    return getattr(request, "param", "sqlite")


def lookup(host: str, port: int) -> list[str]:
    if host not in ADDRESSES:
        raise OSError("no such host")
    return ADDRESSES[host]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def environ() -> dict[str, str]:
    return {"HOOK_URL": URL, "HOOK_SECRET": SECRET, "TOKEN": "token-canary"}


@pytest.fixture
def make(engine: Engine, clock: ManualClock, environ: dict[str, str]) -> Callable[..., Receivers]:
    """A process on the same database; ``file`` holds the tables of its settings file."""
    ids = iter(f"r-{number}" for number in range(1_000))

    def made(
        file: dict[str, Any] | None = None, *, key: bytes = b"k" * 32, on: Engine = engine
    ) -> Receivers:
        guard = Guard(lookup=lookup)
        found = parse_file(file or {}, environ, guard, "warmline.toml")
        return Receivers(
            on,
            Seal(Keys(key)),
            guard,
            found,
            environ=environ,
            clock=clock,
            new_id=lambda: next(ids),
        )

    return made


@pytest.fixture
def receivers(make: Callable[..., Receivers]) -> Receivers:
    return make(FILE)


def code(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(AppError) as caught:
        call(*arguments, **named)
    assert "canary" not in str(caught.value)
    assert not [one for one in (SECRET, OTHER_SECRET) if one[6:] in str(caught.value)]
    return caught.value.code


def page(receivers: Receivers, name: str = "team", **changes: Any) -> Receiver:
    return receivers.create(
        **{"name": name, "kind": "webhook", "url": URL, "secrets": [SECRET]} | changes
    )


# Reading


def test_one_of_the_file_is_there_without_a_row(receivers: Receivers, engine: Engine) -> None:
    (found,) = receivers.all()
    assert found == Receiver(
        "file-ops", "ops", "file", Kind.WEBHOOK, "https://a.example", None, 1, 1
    )
    assert found == receivers.get("file-ops") == receivers.by_name("ops")
    with engine.connect() as connection:
        assert [] == connection.execute(select(table)).all()


@both
def test_one_of_the_page_is_kept(receivers: Receivers, make: Callable[..., Receivers]) -> None:
    made = page(receivers)
    assert made == Receiver("r-0", "team", "page", Kind.WEBHOOK, "https://a.example", None, 1, 1)
    other = make()
    assert [made] == other.all()
    assert made == other.get("r-0") == other.by_name("team")
    endpoint = Endpoint(URL, (SECRET,), Kind.WEBHOOK, "https://a.example")
    assert endpoint == other.endpoint("r-0")


@both
def test_all_are_listed_by_name(receivers: Receivers) -> None:
    page(receivers, "zeta")
    page(receivers, "alpha")
    assert ["alpha", "ops", "zeta"] == [one.name for one in receivers.all()]


def test_what_is_not_there_is_none_or_not_found(receivers: Receivers) -> None:
    assert receivers.get("r-9") is None
    assert receivers.by_name("nobody") is None
    calls = (receivers.require, receivers.endpoint, receivers.enable, receivers.delete)
    for call in (*calls, receivers.update, receivers.check):
        assert "not_found" == code(call, "r-9")


def test_signed_tells_whether_there_are_secrets(receivers: Receivers) -> None:
    assert page(receivers).signed
    slack = page(receivers, "chat", kind="slack", secrets=[])
    assert (0, False) == (slack.secrets, slack.signed)
    assert () == receivers.endpoint(slack.id).secrets


# Making


def test_variables_are_read_when_it_is_sent(receivers: Receivers, environ: dict[str, str]) -> None:
    made = page(receivers, url="env:HOOK_URL", secrets=["env:HOOK_SECRET"])
    assert "https://a.example" == made.shown
    environ["HOOK_SECRET"] = OTHER_SECRET
    environ["HOOK_URL"] = "https://b.example/canary"
    endpoint = receivers.endpoint(made.id)
    assert (OTHER_SECRET,) == endpoint.secrets
    assert ("https://b.example/canary", "https://b.example") == (endpoint.url, endpoint.shown)


def test_a_variable_that_has_gone_is_told(receivers: Receivers, environ: dict[str, str]) -> None:
    made = page(receivers, url="env:HOOK_URL", secrets=["env:HOOK_SECRET"])
    for name, outcome in (("HOOK_SECRET", "the secret"), ("HOOK_URL", "the address")):
        del environ[name]
        with pytest.raises(UnreadableError) as caught:
            receivers.endpoint(made.id)
        assert f"{outcome} cannot be read" == caught.value.outcome
        assert name in caught.value.message
    assert made == receivers.get(made.id)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, "bad_receiver"),
        ({"name": "a\nb"}, "bad_receiver"),
        ({"name": "a" * 101}, "bad_receiver"),
        ({"name": None}, "bad_receiver"),
        ({"kind": "email"}, "bad_receiver"),
        ({"kind": None}, "bad_receiver"),
        ({"url": ""}, "bad_address"),
        ({"url": None}, "bad_address"),
        ({"url": "gopher://a.example/canary"}, "bad_address"),
        ({"url": "https://nowhere.example/canary"}, "bad_address"),
        ({"url": "https://u:canary@a.example/"}, "bad_address"),
        ({"url": "http://a.example/canary"}, "address_refused"),
        ({"url": "https://127.0.0.1/canary"}, "address_refused"),
        ({"url": "https://inside.example/canary"}, "address_refused"),
        ({"url": "env:MISSING"}, "bad_receiver"),
        ({"url": "env:WARMLINE_TOKEN"}, "bad_receiver"),
        ({"url": "env:TOKEN"}, "bad_address"),
        ({"url": "file:/etc/hostname"}, "bad_receiver"),
        ({"secrets": []}, "bad_receiver"),
        ({"secrets": None}, "bad_receiver"),
        ({"secrets": SECRET}, "bad_receiver"),
        ({"secrets": ["canary"]}, "bad_receiver"),
        ({"secrets": ["env:TOKEN"]}, "bad_receiver"),
        ({"secrets": ["env:WARMLINE_TOKEN"]}, "bad_receiver"),
        ({"secrets": ["file:/etc/hostname"]}, "bad_receiver"),
        ({"secrets": [SECRET, SECRET]}, "bad_receiver"),
        ({"secrets": [SECRET, OTHER_SECRET, THIRD_SECRET]}, "bad_receiver"),
        ({"kind": "slack"}, "bad_receiver"),
    ],
)
def test_what_cannot_be_used_is_not_saved(
    receivers: Receivers, changes: dict[str, Any], expected: str
) -> None:
    assert expected == code(page, receivers, **changes)
    assert ["ops"] == [one.name for one in receivers.all()]


@pytest.mark.parametrize("name", ["ops", "team", " team "])
def test_a_name_is_given_once(receivers: Receivers, name: str) -> None:
    page(receivers)
    assert "name_taken" == code(page, receivers, name)


@both
def test_two_processes_cannot_give_one_name_at_once(
    make: Callable[..., Receivers], database: str
) -> None:
    engines = [open_engine(database) for _ in range(4)]
    barrier = threading.Barrier(4)
    results: list[str] = []

    def create(receivers: Receivers) -> None:
        barrier.wait()
        try:
            results.append(page(receivers).name)
        except AppError as error:
            results.append(error.code)

    threads = [threading.Thread(target=create, args=(make(on=engine),)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in engines:
        engine.dispose()
    assert ["name_taken", "name_taken", "name_taken", "team"] == sorted(results)


@both
def test_there_are_no_more_than_200(receivers: Receivers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.alerts.receivers.MOST", 2)
    page(receivers, "a")
    page(receivers, "b")
    assert "too_many" == code(page, receivers, "c")


# Changing


@both
def test_what_is_not_given_stays(receivers: Receivers, clock: ManualClock, engine: Engine) -> None:
    made = page(receivers)
    clock.advance(60)
    changed = receivers.update(made.id, name="renamed")
    assert ("renamed", 2, made.shown, 1) == (
        changed.name,
        changed.version,
        changed.shown,
        changed.secrets,
    )
    assert (URL, (SECRET,)) == (
        receivers.endpoint(made.id).url,
        receivers.endpoint(made.id).secrets,
    )
    with engine.connect() as connection:
        (row,) = connection.execute(select(table)).all()
    assert (START_MS, START_MS + 60_000) == (row.created_at, row.updated_at)


def test_an_address_is_checked_when_it_is_changed(receivers: Receivers) -> None:
    made = page(receivers)
    assert "address_refused" == code(receivers.update, made.id, url="https://inside.example/canary")
    assert made == receivers.get(made.id)
    changed = receivers.update(made.id, url="https://a.example:8443/canary")
    assert "https://a.example:8443" == changed.shown
    assert "https://a.example:8443/canary" == receivers.endpoint(made.id).url


def test_a_secret_is_rotated(receivers: Receivers) -> None:
    made = page(receivers)
    assert 2 == receivers.update(made.id, add_secret=OTHER_SECRET).secrets
    assert (OTHER_SECRET, SECRET) == receivers.endpoint(made.id).secrets
    assert 1 == receivers.update(made.id, retire_old_secret=True).secrets
    assert (OTHER_SECRET,) == receivers.endpoint(made.id).secrets


def test_rotating_again_keeps_the_newest_two(receivers: Receivers) -> None:
    made = page(receivers, secrets=[OTHER_SECRET, SECRET])
    receivers.update(made.id, add_secret="env:HOOK_SECRET", version=1)
    assert (SECRET, OTHER_SECRET) == receivers.endpoint(made.id).secrets


def test_the_only_secret_is_not_retired(receivers: Receivers) -> None:
    made = page(receivers)
    assert "bad_receiver" == code(receivers.update, made.id, retire_old_secret=True)
    assert "bad_receiver" == code(receivers.update, made.id, add_secret=SECRET)
    assert "bad_receiver" == code(
        receivers.update, made.id, add_secret=OTHER_SECRET, retire_old_secret=True
    )
    assert made == receivers.get(made.id)


def test_a_kind_that_does_not_fit_the_secrets_is_refused(receivers: Receivers) -> None:
    made = page(receivers)
    assert "bad_receiver" == code(receivers.update, made.id, kind="slack")
    assert Kind.ALERTMANAGER == receivers.update(made.id, kind="alertmanager").kind
    changed = receivers.update(made.id, kind="slack", secrets=[])
    assert (Kind.SLACK, 0) == (changed.kind, changed.secrets)
    assert "bad_receiver" == code(receivers.update, made.id, kind="webhook")


def test_a_change_of_what_someone_else_has_changed_is_refused(receivers: Receivers) -> None:
    made = page(receivers)
    receivers.update(made.id, name="first", version=1)
    assert "conflict" == code(receivers.update, made.id, name="second", version=1)
    assert "first" == receivers.require(made.id).name


@both
def test_a_change_between_reading_and_writing_is_not_lost(
    receivers: Receivers, make: Callable[..., Receivers], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = page(receivers)
    other = make()
    monkeypatch.setitem(ADDRESSES, "slow.example", ADDRESSES["a.example"])
    checked = Guard.check

    def meanwhile(guard: Guard, url: str):
        monkeypatch.setattr(Guard, "check", checked)
        other.update(made.id, add_secret=OTHER_SECRET)
        return checked(guard, url)

    monkeypatch.setattr(Guard, "check", meanwhile)
    assert "conflict" == code(receivers.update, made.id, url="https://slow.example/canary")
    assert (URL, 2) == (receivers.endpoint(made.id).url, receivers.require(made.id).secrets)


@both
def test_a_name_is_not_changed_to_one_that_is_taken(receivers: Receivers) -> None:
    made = page(receivers)
    page(receivers, "other")
    for name in ("other", "ops"):
        assert "name_taken" == code(receivers.update, made.id, name=name)
    assert 2 == receivers.update(made.id, name="team").version


def test_one_of_the_file_is_not_changed_here(receivers: Receivers) -> None:
    for call in (receivers.delete, receivers.update):
        with pytest.raises(AppError) as caught:
            call("file-ops")
        assert ("read_only", 409) == (caught.value.code, caught.value.status)
        assert "Change [alerts.receivers.ops] in warmline.toml" in caught.value.hint


@both
def test_one_that_is_deleted_is_gone(receivers: Receivers) -> None:
    made = page(receivers)
    receivers.delete(made.id)
    assert receivers.get(made.id) is None
    assert "team" == page(receivers).name


# Disabling


@pytest.mark.parametrize("name", ["ops", "team"])
def test_the_reason_of_disabling_outlives_a_restart(
    receivers: Receivers, make: Callable[..., Receivers], name: str
) -> None:
    page(receivers)
    found = receivers.by_name(name)
    assert found is not None
    for why in ("it answered 410", "again"):
        receivers.disable(found.id, why)
        assert why == make(FILE).require(found.id).disabled
    enabled = make(FILE).enable(found.id)
    assert enabled.disabled is None
    assert enabled.version == found.version + 1
    assert enabled == receivers.get(found.id)


def test_enabling_what_is_in_use_changes_nothing(receivers: Receivers) -> None:
    made = page(receivers)
    assert made == receivers.enable(made.id)
    assert receivers.get("file-ops") == receivers.enable("file-ops")


def test_disabling_one_that_is_gone_does_nothing(receivers: Receivers, engine: Engine) -> None:
    receivers.disable("r-9", "why")
    receivers.disable("file-other", "why")
    with engine.connect() as connection:
        assert [] == connection.execute(select(table)).all()


@both
def test_disabling_one_whose_name_is_taken_by_another_process_disables_no_other(
    make: Callable[..., Receivers],
) -> None:
    """It cannot be noted; the process with that file does not start again until one is renamed."""
    reading_the_file = make(FILE)
    made = page(make(), "ops")
    reading_the_file.disable("file-ops", "it answered 410")
    assert made == make().get(made.id)


# The file and the page


def test_the_file_does_not_take_the_name_of_one_of_the_page(
    make: Callable[..., Receivers],
) -> None:
    page(make(), "ops")
    with pytest.raises(SettingsError) as caught:
        make(FILE).start()
    assert "[alerts.receivers.ops] in warmline.toml" in caught.value.message
    assert "Rename the table" in caught.value.hint
    make().start()


@both
def test_one_that_has_left_the_file_gives_its_name_free(make: Callable[..., Receivers]) -> None:
    make(FILE).disable("file-ops", "it answered 410")
    without = make()
    without.start()
    assert [] == without.all()
    assert "name_taken" == code(page, make(FILE), "ops")
    assert "page" == page(without, "ops").origin


# Testing


def test_the_address_is_checked_again_before_a_test(
    receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = page(receivers)
    assert made == receivers.check(made.id)
    assert "ops" == receivers.check("file-ops").name
    monkeypatch.setitem(ADDRESSES, "a.example", ["169.254.169.254"])
    for one in receivers.all():
        with pytest.raises(AddressRefusedError):
            receivers.check(one.id)


# Hiding


def test_the_database_holds_neither_address_nor_secrets(
    receivers: Receivers, database: str, engine: Engine
) -> None:
    made = page(receivers, secrets=[OTHER_SECRET, SECRET])
    receivers.update(
        made.id, add_secret=THIRD_SECRET, url="https://a.example/path-canary-2?q=canary"
    )
    receivers.disable("file-ops", "it answered 410")
    engine.dispose()
    path = Path(database)
    stored = b"".join(part.read_bytes() for part in path.parent.glob(path.name + "*"))
    assert b"https://a.example" in stored
    for secret in ("canary", SECRET[6:], OTHER_SECRET[6:], THIRD_SECRET[6:]):
        assert secret.encode() not in stored


def test_another_key_file_is_told_and_harms_no_other_receiver(
    make: Callable[..., Receivers],
) -> None:
    made = page(make())
    other = make(FILE, key=b"x" * 32)
    assert {"ops": 1, "team": None} == {one.name: one.secrets for one in other.all()}
    with pytest.raises(UnreadableError) as caught:
        other.endpoint(made.id)
    assert ("key_differs", "the address cannot be read") == (
        caught.value.code,
        caught.value.outcome,
    )
    assert "another key file" in caught.value.message
    assert "key_differs" == code(other.update, made.id, add_secret=OTHER_SECRET)
    other.update(made.id, url=URL, secrets=[OTHER_SECRET])
    assert (OTHER_SECRET,) == other.endpoint(made.id).secrets


def test_nothing_of_it_is_in_a_repr(receivers: Receivers) -> None:
    made = page(receivers)
    texts = [repr(made), repr(receivers), repr(receivers.endpoint(made.id))]
    texts += [repr(one) for one in receivers._files.values()]
    for text in texts:
        assert "canary" not in text
        assert SECRET[6:] not in text
