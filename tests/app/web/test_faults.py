import logging

import pytest
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from app.errors import AppError
from app.web import faults

SECRET = "canary-5b1f"


def client():
    app = FastAPI(middleware=[Middleware(faults.Faults)])
    faults.install(app)

    @app.get("/known")
    def known():
        raise AppError("some_code", "some message", "a hint", status=409)

    @app.get("/unforeseen")
    def unforeseen():
        raise RuntimeError(SECRET)

    @app.get("/database")
    def database():
        raise OperationalError("SELECT", {"q": SECRET}, Exception(SECRET))

    @app.get("/busy")
    def busy():
        raise AppError("some_code", "some message", "a hint", status=503)

    @app.get("/number/{number}")
    def number(number: int):
        return number

    @app.get("/teapot")
    def teapot():
        raise HTTPException(418, SECRET, headers={"x-tea": "green"})

    @app.get("/cut")
    def cut():
        def body():
            yield b"half"
            raise RuntimeError(SECRET)

        return StreamingResponse(body())

    @app.websocket("/socket")
    async def socket(websocket: WebSocket):
        raise RuntimeError(SECRET)

    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/known", 409, "some_code"),
        ("/unforeseen", 500, "internal_error"),
        ("/database", 503, "ledger_unavailable"),
        ("/number/ten", 422, "invalid_parameter"),
        ("/teapot", 418, "bad_request"),
        ("/nowhere", 404, "not_found"),
    ],
)
def test_every_error_has_the_one_shape_and_tells_no_secret(path, status, code, caplog):
    with caplog.at_level(logging.DEBUG):
        answer = client().get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()["error"]) == {"code", "message", "hint"}
    assert SECRET not in answer.text
    assert SECRET not in caplog.text


def test_the_log_says_where_an_unforeseen_error_was(caplog):
    client().get("/unforeseen")
    assert "RuntimeError at" in caplog.text


@pytest.mark.parametrize("path", ["/unforeseen", "/database", "/busy"])
def test_an_error_of_the_server_has_an_id_that_the_log_names(path, caplog):
    first, second = (client().get(path).headers["x-request-id"] for _ in range(2))
    assert first != second
    assert f"request {first}: " in caplog.text
    assert "x-request-id" not in client().get("/known").headers


def test_headers_of_an_error_are_kept():
    assert client().get("/teapot").headers["x-tea"] == "green"


def test_a_wrong_method_is_told_with_those_allowed():
    answer = client().post("/known")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET"


def test_an_answer_that_has_begun_is_cut_short_and_not_ended():
    with pytest.raises(RuntimeError):
        TestClient(client().app).get("/cut")


def test_a_failing_socket_is_refused_with_the_same_shape():
    with pytest.raises(WebSocketDenialResponse) as refused, client().websocket_connect("/socket"):
        pass
    assert refused.value.status_code == 500
