import pytest

from app.alerts import receiver_entries as entries
from app.alerts.endpoints import SECRET_UNREADABLE, Kind
from app.alerts.sealed import SealBrokenError
from app.errors import AppError
from tests.support.receiver import SECRET


def refusal(call, *arguments) -> AppError:
    with pytest.raises(AppError) as caught:
        call(*arguments)
    assert ("bad_receiver", 422) == (caught.value.code, caught.value.status)
    return caught.value


def test_a_name_is_one_printable_line() -> None:
    assert "on call ü" == entries.name("  on call ü ")
    assert "a" * 100 == entries.name("a" * 100)
    for value in ("", " ", "a" * 101, "a\nb", "a\u202eb", 7, None):
        assert "of 1 to 100 characters in one line" in refusal(entries.name, value).message


@pytest.mark.parametrize("value", ["https://hooks.example/canary", SECRET, f"ops {SECRET}"])
def test_an_address_or_a_secret_is_no_name(value: str) -> None:
    """Names stand on pages, in messages, in metrics and in the log."""
    error = refusal(entries.name, value)
    assert "The name must not be an address or a credential." == error.message


def test_a_kind_is_one_of_three() -> None:
    assert Kind.SLACK is entries.kind("slack")
    for value in ("Slack", "", None, []):
        assert "Kind must be one of webhook, slack, alertmanager." == (
            refusal(entries.kind, value).message
        )


def test_an_address_is_kept_as_it_is_written() -> None:
    environ = {"HOOK_URL": "https://a.example/x"}
    assert ("env:HOOK_URL", "https://a.example/x") == entries.address(" env:HOOK_URL ", environ)
    assert ("https://a.example/x",) * 2 == entries.address("https://a.example/x", {})
    assert "only the settings file may" in refusal(entries.address, "file:/x", {}).message


def test_secrets_are_kept_as_they_are_written() -> None:
    environ = {"HOOK_SECRET": SECRET}
    assert ("env:HOOK_SECRET",) == entries.secrets(Kind.WEBHOOK, ["env:HOOK_SECRET"], environ)
    refusal(entries.secrets, Kind.WEBHOOK, ["env:HOOK_SECRET"], {})
    refusal(entries.secrets, Kind.WEBHOOK, [], environ)


def test_a_kind_must_suit_the_secrets_that_there_are() -> None:
    entries.check_count(Kind.ALERTMANAGER, 0)
    error = refusal(entries.check_count, Kind.SLACK, 1)
    assert "Give secrets together with kind." == error.hint


def test_what_cannot_be_read_says_what_to_do() -> None:
    error = entries.unreadable(SECRET_UNREADABLE, "ops", ValueError("secrets names a file"))
    assert "The receiver ops cannot be used: secrets names a file." == error.message
    assert SECRET_UNREADABLE == error.outcome
    broken = entries.unreadable(SECRET_UNREADABLE, "ops", SealBrokenError())
    assert "key_differs" == broken.code


def test_other_refusals_have_their_status() -> None:
    found = [entries.not_found(), entries.conflict(), entries.taken("ops")]
    assert [("not_found", 404), ("conflict", 409), ("name_taken", 409)] == [
        (error.code, error.status) for error in found
    ]
