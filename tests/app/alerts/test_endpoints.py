import base64
from contextlib import suppress
from pathlib import Path

import pytest

from app.alerts import endpoints
from app.alerts.endpoints import Endpoint, Kind
from tests.support.receiver import OTHER_SECRET, SECRET

ENVIRON = {"HOOK_URL": " https://a.example/canary \n", "EMPTY": " ", "WARMLINE_TOKEN": "canary"}


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_a_text_is_itself() -> None:
    assert "https://a.example/" == endpoints.read("https://a.example/", "url", {})


def test_a_variable_is_read() -> None:
    assert "https://a.example/canary" == endpoints.read("env:HOOK_URL", "url", ENVIRON)


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("one\n")
    assert "one" == endpoints.read(f"file:{file}", "secrets", {})
    file.write_text("two\n")
    assert "two" == endpoints.read(f"file:{file}", "secrets", {})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("env:MISSING", "environment variable MISSING, which is not set"),
        ("env:EMPTY", "environment variable EMPTY, which is not set"),
        ("env:WARMLINE_TOKEN", "begins with WARMLINE_"),
        ("env:warmline_token", "begins with WARMLINE_"),
        ("env:", "no name of a variable"),
        ("env:A-B canary", "no name of a variable"),
        ("file:/nowhere/canary", "cannot be read (FileNotFoundError)"),
        ("file:/", "cannot be read (IsADirectoryError)"),
        ("file:\0canary", "cannot be read (ValueError)"),
    ],
)
def test_what_cannot_be_read_is_said_in_words(written: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        endpoints.read(written, "url", ENVIRON)
    assert said in str(caught.value)
    assert "canary" not in str(caught.value)


def test_nothing_of_a_file_hangs_on_the_error(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"canary\xff")
    with pytest.raises(ValueError, match="cannot be read") as caught:
        endpoints.read(f"file:{tmp_path}/binary", "secrets", {})
    error: BaseException | None = caught.value
    while error is not None:
        assert "canary" not in repr(error)
        error = error.__cause__ or error.__context__


def test_an_address_in_the_place_of_a_name_is_not_shown() -> None:
    assert "https://…" == endpoints.shown_name("https://hooks.example/canary")
    assert "whsec_…" == endpoints.shown_name("whsec_canary")
    assert "on call/eu" == endpoints.shown_name("on call/eu")
    assert "a" * 100 == endpoints.shown_name("a" * 101)


def test_an_empty_file_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="is empty"):
        endpoints.read(f"file:{tmp_path}/empty", "secrets", {})


def test_the_page_names_no_files(tmp_path: Path) -> None:
    """It would tell which there are: both answers are the same."""
    (tmp_path / "there").write_text(SECRET)
    said = set()
    for name in ("there", "not-there"):
        with pytest.raises(ValueError) as caught:
            endpoints.read(f"file:{tmp_path}/{name}", "url", {}, files=False)
        said.add(str(caught.value))
    assert {"url must not name a file here; only the settings file may"} == said


@pytest.mark.parametrize("size", [24, 32, 64])
def test_a_secret_of_24_to_64_bytes_is_one(size: int) -> None:
    secret = secret_of(size)
    assert secret == endpoints.check_secret(secret)
    assert secret.rstrip("=") == endpoints.check_secret(secret.rstrip("="))


@pytest.mark.parametrize(
    "secret",
    [
        *(secret_of(23), secret_of(65), "whsec_", "", "canary", "canary" + SECRET),
        *(SECRET.removeprefix("whsec_"), SECRET[:-6] + "-" + SECRET[-6:], SECRET + "é"),
        *(
            SECRET[:20] + "\n" + SECRET[20:],
            "whsec_ " + SECRET[6:],
            SECRET[:20] + "-_-_" + SECRET[20:],
        ),
    ],
)
def test_what_is_no_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValueError) as caught:
        endpoints.check_secret(secret)
    assert "each secret must be whsec_ and base64 of 24 to 64 bytes" == str(caught.value)


def test_two_secrets_must_differ() -> None:
    assert (SECRET, OTHER_SECRET) == endpoints.read_secrets([SECRET, OTHER_SECRET], {})
    with pytest.raises(ValueError, match="must differ"):
        endpoints.read_secrets([SECRET, "env:A"], {"A": SECRET})


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [(Kind.WEBHOOK, {1, 2}), (Kind.SLACK, {0}), (Kind.ALERTMANAGER, {0, 1, 2})],
)
def test_each_kind_has_its_number_of_secrets(kind: Kind, allowed: set[int]) -> None:
    taken = set()
    for count in range(4):
        with suppress(ValueError):
            endpoints.check_count(kind, count)
            taken.add(count)
    assert allowed == taken


@pytest.mark.parametrize("value", [SECRET, None, {"a": "b"}, [1], [SECRET, None]])
def test_secrets_are_a_list_of_texts(value) -> None:
    with pytest.raises(ValueError, match="list of texts"):
        endpoints.texts(value)


def test_an_endpoint_shows_neither_address_nor_secrets() -> None:
    endpoint = Endpoint("https://a.example/canary", (SECRET,), Kind.WEBHOOK, "https://a.example")
    assert "canary" not in repr(endpoint)
    assert SECRET[6:] not in repr(endpoint)
    assert "https://a.example" in repr(endpoint)
