import pytest

from app.alerts.sealed import Seal, SealBrokenError
from app.keys import Keys

KEYS = Keys(b"k" * 32)


def test_what_is_sealed_is_opened_by_whoever_has_the_key_file() -> None:
    sealed = Seal(KEYS).seal("https://hooks.example.com/path-canary/ü")
    assert "https://hooks.example.com/path-canary/ü" == Seal(Keys(b"k" * 32)).open(sealed)


def test_the_sealed_text_shows_nothing_and_differs_each_time() -> None:
    one, two = Seal(KEYS).seal("path-canary"), Seal(KEYS).seal("path-canary")
    assert "canary" not in one
    assert one != two


@pytest.mark.parametrize("change", [lambda s: s[:-4], lambda s: "", lambda s: "AAAA" + s])
def test_what_was_changed_is_not_opened(change) -> None:
    sealed = Seal(KEYS).seal("path-canary")
    with pytest.raises(SealBrokenError):
        Seal(KEYS).open(change(sealed))


def test_another_key_file_is_named_as_the_cause() -> None:
    sealed = Seal(KEYS).seal("path-canary")
    with pytest.raises(SealBrokenError) as caught:
        Seal(Keys(b"x" * 32)).open(sealed)
    assert "key_differs" == caught.value.code
    assert "another key file" in str(caught.value)
    assert "Restore the key file" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
