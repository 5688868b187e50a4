from pathlib import Path
from typing import Any

import pytest

from app.alerts.endpoints import Kind, UnreadableError
from app.alerts.guard import AddressRefusedError, Guard
from app.alerts.receiver_file import FileReceiver, parse_file
from app.errors import SettingsError
from tests.support.receiver import OTHER_SECRET, SECRET

URL = "https://a.example/canary"


def unreachable(host: str, port: int) -> list[str]:
    raise AssertionError("nothing is looked up at start")


GUARD = Guard(["hook.internal"], lookup=unreachable)
ENVIRON = {"HOOK_URL": URL, "HOOK_SECRET": SECRET, "BAD": "canary"}


def read(environ: dict[str, str] = ENVIRON, **table: Any) -> FileReceiver:
    (found,) = parse_file({"ops": table}, environ, GUARD, "warmline.toml")
    return found


def refusal(environ: dict[str, str] = ENVIRON, **table: Any) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read(environ, **table)
    assert "[alerts.receivers.ops] in warmline.toml" in caught.value.message
    assert "canary" not in str(caught.value)
    assert SECRET[6:] not in str(caught.value)
    return caught.value


def test_a_receiver_is_read() -> None:
    found = read(url=URL, secrets=[SECRET])
    assert ("file-ops", "ops", Kind.WEBHOOK) == (found.id, found.name, found.kind)
    assert "https://a.example" == found.shown
    endpoint = found.endpoint(GUARD, ENVIRON)
    assert (URL, (SECRET,)) == (endpoint.url, endpoint.secrets)


def test_several_are_read_in_their_order() -> None:
    tables = {"b": {"kind": "slack", "url": URL}, "a": {"kind": "alertmanager", "url": URL}}
    found = parse_file(tables, {}, GUARD)
    assert ["file-b", "file-a"] == [one.id for one in found]
    assert [Kind.SLACK, Kind.ALERTMANAGER] == [one.kind for one in found]


def test_address_and_secret_of_variables_are_worked_out_at_start() -> None:
    found = read(url="env:HOOK_URL", secrets=["env:HOOK_SECRET", OTHER_SECRET])
    assert "https://a.example" == found.shown
    endpoint = found.endpoint(GUARD, ENVIRON)
    assert (URL, (SECRET, OTHER_SECRET)) == (endpoint.url, endpoint.secrets)


def test_files_are_read_anew_for_each_message(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{URL}\n")
    (tmp_path / "secret").write_text(SECRET)
    found = read(url=f"file:{tmp_path}/url", secrets=[f"file:{tmp_path}/secret"])
    assert (SECRET,) == found.endpoint(GUARD, {}).secrets
    (tmp_path / "secret").write_text(OTHER_SECRET)
    (tmp_path / "url").write_text("https://b.example/canary")
    endpoint = found.endpoint(GUARD, {})
    assert (OTHER_SECRET,) == endpoint.secrets
    assert ("https://b.example/canary", "https://b.example") == (endpoint.url, endpoint.shown)


def test_a_secret_that_has_gone_is_told_without_being_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    found = read(url=URL, secrets=[f"file:{secret}"])
    for text in ("", "whsec_canary", None):
        secret.unlink() if text is None else secret.write_text(text)
        with pytest.raises(UnreadableError) as caught:
            found.endpoint(GUARD, {})
        assert "the secret cannot be read" == caught.value.outcome
        assert "[alerts.receivers.ops]" in caught.value.message
        assert "canary" not in str(caught.value)


def test_an_address_that_has_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(URL)
    found = read(url=f"file:{tmp_path}/url", secrets=[SECRET])
    (tmp_path / "url").write_text("https://127.0.0.1/canary")
    with pytest.raises(AddressRefusedError):
        found.endpoint(GUARD, {})
    (tmp_path / "url").unlink()
    with pytest.raises(UnreadableError) as caught:
        found.endpoint(GUARD, {})
    assert "the address cannot be read" == caught.value.outcome


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"secrets": [SECRET]}, "has no url"),
        ({"url": "", "secrets": [SECRET]}, "has no url"),
        ({"url": 7, "secrets": [SECRET]}, "has no url"),
        ({"url": "env:MISSING", "secrets": [SECRET]}, "variable MISSING, which is not set"),
        ({"url": "env:WARMLINE_TOKEN", "secrets": [SECRET]}, "begins with WARMLINE_"),
        ({"url": "file:/nowhere", "secrets": [SECRET]}, "cannot be read (FileNotFoundError)"),
        ({"url": "env:BAD", "secrets": [SECRET]}, "must begin with https://"),
        ({"url": "http://a.example/canary", "secrets": [SECRET]}, "http://a.example is not https"),
        ({"url": "https://10.0.0.7/canary", "secrets": [SECRET]}, "not public"),
        ({"url": URL}, "one or two secrets"),
        ({"url": URL, "secrets": []}, "one or two secrets"),
        ({"url": URL, "secrets": SECRET}, "list of texts"),
        ({"url": URL, "secrets": [SECRET, OTHER_SECRET, "env:HOOK_SECRET"]}, "one or two secrets"),
        ({"url": URL, "secrets": [SECRET, "env:HOOK_SECRET"]}, "must differ"),
        ({"url": URL, "secrets": ["env:MISSING"]}, "variable MISSING, which is not set"),
        ({"url": URL, "secrets": ["env:BAD"]}, "24 to 64 bytes"),
        ({"url": URL, "secrets": ["file:/nowhere"]}, "cannot be read (FileNotFoundError)"),
        ({"url": URL, "kind": "slack", "secrets": [SECRET]}, "slack has no secrets"),
        ({"url": URL, "kind": "email"}, "must be one of webhook, slack, alertmanager"),
        ({"url": URL, "kind": ["slack"]}, "must be one of webhook, slack, alertmanager"),
    ],
)
def test_what_cannot_be_used_is_an_error_at_start(table: dict[str, Any], said: str) -> None:
    assert said in str(refusal(**table))


def test_an_unknown_field_names_the_nearest() -> None:
    error = refusal(url=URL, secret=[SECRET])
    assert "There is no field secret in" in error.message
    assert "Did you mean secrets?" == error.hint
    assert "Fields are kind, url, secrets." == refusal(url=URL, mailbox="canary").hint


def test_private_hosts_name_what_allows_them() -> None:
    error = refusal(url="http://10.0.0.7/canary", secrets=[SECRET])
    assert "webhook_private_hosts" in error.hint
    assert "http://hook.internal" == read(url="http://hook.internal/x", secrets=[SECRET]).shown


def test_nothing_of_address_and_secrets_is_in_the_repr() -> None:
    text = repr(read(url=URL, secrets=[SECRET]))
    assert "canary" not in text
    assert SECRET[6:] not in text
