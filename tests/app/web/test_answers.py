import json
from decimal import Decimal

from app.errors import AppError
from app.web.answers import JsonAnswer, encode, error_answer


def test_json_is_compact_and_utf_8():
    assert encode({"a": [1, None, "ä"]}) == '{"a":[1,null,"ä"]}'.encode()
    assert JsonAnswer({"x": 1.5}).headers["content-type"] == "application/json"


def test_money_is_a_string():
    assert json.loads(encode({"cost": Decimal("0.10")})) == {"cost": "0.10"}


def test_an_error_has_its_status_and_shape():
    answer = error_answer(AppError("code", "message", None, status=418), {"x-more": "1"})
    assert answer.status_code == 418
    assert json.loads(answer.body) == {
        "error": {"code": "code", "message": "message", "hint": None}
    }
    assert answer.headers["x-more"] == "1"
