import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import LedgerError
from app.keys import Keys, load, load_or_create

KEYS = Keys(bytes(range(32)))
parts = st.lists(st.one_of(st.text(max_size=5), st.binary(max_size=5)), max_size=4)


def as_bytes(values: list[str | bytes]) -> list[bytes]:
    return [v if isinstance(v, bytes) else v.encode("utf-8", "surrogatepass") for v in values]


def test_parts_that_only_join_to_the_same_text_have_different_hashes():
    assert KEYS.hmac("session", "a:b", "c") != KEYS.hmac("session", "a", "b:c")
    assert KEYS.hmac("session", "ab", "") != KEYS.hmac("session", "", "ab")
    assert KEYS.hmac("session", "ab") != KEYS.hmac("session", "ab", "")


@given(parts, parts)
def test_hashes_are_equal_exactly_when_the_parts_are(left: list, right: list):
    same = as_bytes(left) == as_bytes(right)
    assert same == (KEYS.hmac("p", *left) == KEYS.hmac("p", *right))


def test_one_value_has_another_hash_for_another_purpose_and_under_another_key():
    assert KEYS.hmac("tenant", "x") != KEYS.hmac("session", "x")
    assert KEYS.hmac("tenant", "x") != Keys(bytes(32)).hmac("tenant", "x")


def test_a_hash_is_32_hex_digits_and_stays_the_same_from_version_to_version():
    assert "683bb2f2d8094c94c3a9cf2bdbc08744" == KEYS.hmac("tenant", "credential")


def test_a_lone_surrogate_from_json_can_be_hashed():
    assert 32 == len(KEYS.hmac("session", "\ud800"))


def test_a_new_key_file_is_readable_by_its_owner_only(tmp_path: Path):
    path = tmp_path / "new" / "ledger.key"
    keys = load_or_create(path)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 32 == len(keys.secret)
    assert ["ledger.key"] == [entry.name for entry in path.parent.iterdir()]


def test_a_key_file_that_exists_is_read_and_never_replaced(tmp_path: Path):
    path = tmp_path / "ledger.key"
    first = load_or_create(path)
    assert first == load_or_create(path)
    assert first == load(path)


def test_who_comes_second_takes_the_first_ones_key(tmp_path: Path, monkeypatch):
    path = tmp_path / "ledger.key"
    first = load_or_create(path)
    monkeypatch.setattr(Path, "exists", lambda self: False)  # as if both had looked at once
    assert first == load_or_create(path)


def test_a_malformed_key_file_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "ledger.key"
    for text in ("", "zz" * 32, "ab" * 31):
        path.write_text(text)
        with pytest.raises(LedgerError) as caught:
            load_or_create(path)
        assert "key_malformed" == caught.value.code
        assert text == path.read_text()


def test_a_missing_key_file_is_an_error_that_says_how_to_make_one(tmp_path: Path):
    with pytest.raises(LedgerError, match="openssl rand -hex 32") as caught:
        load(tmp_path / "none.key")
    assert "key_missing" == caught.value.code


def test_a_binary_key_file_is_unreadable(tmp_path: Path):
    path = tmp_path / "ledger.key"
    path.write_bytes(os.urandom(8) + b"\xff")
    with pytest.raises(LedgerError) as caught:
        load(path)
    assert "key_unreadable" == caught.value.code


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="key_file") as caught:
        load_or_create(tmp_path / "file" / "ledger.key")
    assert "key_unwritable" == caught.value.code


def test_a_key_that_others_can_read_is_warned_about(tmp_path: Path, caplog):
    path = tmp_path / "ledger.key"
    load_or_create(path)
    assert "" == caplog.text
    path.chmod(0o644)
    load(path)
    assert "chmod 600" in caplog.text


def test_the_secret_is_not_in_the_repr():
    assert "Keys()" == repr(KEYS)


def test_the_fingerprint_tells_secrets_apart():
    assert KEYS.fingerprint == Keys(bytes(range(32))).fingerprint
    assert KEYS.fingerprint != Keys(bytes(32)).fingerprint


def test_a_pseudonym_is_a_hash_under_the_key():
    assert KEYS.hmac("name", "ünï") == KEYS.pseudonym("ünï")
    assert Keys(bytes(32)).pseudonym("ünï") != KEYS.pseudonym("ünï")
