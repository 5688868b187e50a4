import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.errors import AppError
from app.web import faults
from app.web.alerts import bodies


@pytest.fixture
def client():
    app = FastAPI()
    faults.install(app)

    @app.post("/")
    def take(body: bodies.Body) -> dict:
        return {"got": body}

    with TestClient(app) as opened:
        yield opened


def test_an_object_is_taken_as_it_is_and_no_body_is_an_empty_one(client):
    assert {"got": {"a": [1, None]}} == client.post("/", content=b'{"a": [1, null]}').json()
    assert {"got": {}} == client.post("/").json()


@pytest.mark.parametrize(
    "content", [b"[]", b"3", b'"x"', b"null", b"{", b"\xff", b'{"a": NaN}', b"[" * 9_000]
)
def test_anything_else_is_refused(client, content):
    answer = client.post("/", content=content)
    assert (400, "bad_json") == (answer.status_code, answer.json()["error"]["code"])


def test_a_body_may_have_64_kib_and_not_a_byte_more(client):
    fits = b'{"a": "' + b"x" * (bodies.LIMIT - 9) + b'"}'
    assert bodies.LIMIT == len(fits)
    assert 200 == client.post("/", content=fits).status_code
    answer = client.post("/", content=fits + b" ")
    assert (413, "too_large") == (answer.status_code, answer.json()["error"]["code"])


def refused(call, *arguments) -> dict:
    with pytest.raises(AppError) as caught:
        call(*arguments)
    assert 422 == caught.value.status
    return caught.value.as_dict()["error"]


def test_a_field_that_is_not_known_is_refused_with_the_nearest_one():
    error = refused(bodies.only, {"comment": 1, "ends_a": 2}, "comment", "ends_at")
    assert ("bad_field", "ends_a", "Did you mean ends_at?") == (
        error["code"],
        error["field"],
        error["hint"],
    )
    assert "Fields are a, b." == refused(bodies.only, {"zzz": 1}, "a", "b")["hint"]
    bodies.only({"a": 1}, "a", "b")


@pytest.mark.parametrize(
    ("read", "good", "wrong"),
    [
        (bodies.text, ["a"], ["", " ", 1, None, "x" * 1_001]),
        (bodies.optional_text, ["a", None], ["", 1]),
        (bodies.whole, [1, 0, None], [True, 1.0, "1"]),
        (bodies.texts, [["a"], [], None], ["a", [1], [""], ["a"] * 21]),
        (bodies.flag, [True, False], [1, None, "true"]),
        (bodies.table, [{"a": 1}, {}], [[], "a", 0]),
    ],
)
def test_a_field_has_its_type_and_an_error_names_it(read, good, wrong):
    for value in good:
        assert value == read({"it": value}, "it")
    for value in wrong:
        assert "it" == refused(read, {"it": value}, "it")["field"]


def test_what_is_absent_is_none_false_or_empty():
    assert (None, None, None, False, {}) == (
        bodies.optional_text({}, "it"),
        bodies.whole({}, "it"),
        bodies.texts({}, "it"),
        bodies.flag({}, "it"),
        bodies.table({}, "it"),
    )


def test_openapi_is_told_the_fields():
    schema = bodies.takes("a", "b", needed=("a",))["requestBody"]["content"]["application/json"]
    assert (["a"], ["a", "b"]) == (
        schema["schema"]["required"],
        list(schema["schema"]["properties"]),
    )
    assert bodies.takes("a")["requestBody"]["required"] is False
