"""Request headers in one form, and the credential in them."""

import pytest

from app.demo.provider.errors import ApiError
from app.demo.provider.headers import credential_of, lower_headers


def test_names_are_lower_case_and_repeated_ones_stay():
    assert lower_headers([("X-A", "1"), ("x-a", "2")]) == (("x-a", "1"), ("x-a", "2"))
    assert lower_headers({"X-A": "B"}) == (("x-a", "B"),)


def test_the_scheme_is_not_part_of_the_key():
    assert credential_of((("authorization", "bearer k"),)) == credential_of((("api-key", "k"),))


def test_the_account_is():
    key = ("authorization", "Bearer k")
    assert credential_of((key, ("chatgpt-account-id", "a"))) != credential_of((key,))


def test_without_a_key_there_is_no_credential():
    with pytest.raises(ApiError) as refused:
        credential_of((("authorization", "Basic k"),))
    assert refused.value.status == 401
