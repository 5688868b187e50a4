import pytest

from app.errors import AppError, BadParameterError, LedgerError, SettingsError


def test_every_error_has_one_shape():
    error = AppError("teapot", "It is a teapot.", "Use a kettle.", 418)
    assert {
        "error": {"code": "teapot", "message": "It is a teapot.", "hint": "Use a kettle."}
    } == error.as_dict()
    assert 418 == error.status


def test_a_missing_hint_is_null_and_not_left_out():
    assert {"code": "c", "message": "m", "hint": None} == AppError("c", "m").as_dict()["error"]


def test_the_text_of_an_error_says_what_is_wrong_and_what_to_do():
    assert "It is a teapot. Use a kettle." == str(AppError("t", "It is a teapot.", "Use a kettle."))
    assert "It is a teapot." == str(AppError("t", "It is a teapot."))


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (SettingsError("m"), "bad_setting", 500),
        (BadParameterError("from", "m"), "bad_parameter", 400),
        (LedgerError("ledger_outdated", "m"), "ledger_outdated", 503),
    ],
)
def test_each_kind_has_its_code_and_status(error: AppError, code: str, status: int):
    assert (code, status) == (error.code, error.status)


def test_a_bad_parameter_names_itself():
    assert "from" == BadParameterError("from", "m").name
