"""Every error of the dashboard in the one shape of ``app.errors``."""

from __future__ import annotations

import logging
import secrets

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.errors import AppError
from app.tasks import describe
from app.web.answers import Asgi, Message, Receive, Scope, Send, error_answer, refuse
from app.web.web import ledger_unavailable

logger = logging.getLogger(__name__)

NUMBER = "warmline.request"
HEADER = b"x-request-id"
_BY_STATUS = {
    404: ("not_found", "There is nothing at this address.", "/docs lists what there is."),
    405: ("method_not_allowed", "This address does not take that method.", "/docs lists them."),
}


def install(app: FastAPI) -> None:
    app.add_exception_handler(AppError, _app_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(SQLAlchemyError, _ledger_error)


def _app_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)
    if error.status >= 500:
        logger.warning("request %s: %s", request.scope[NUMBER], error.code)
    return error_answer(error)


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message, hint = _BY_STATUS.get(
        error.status_code, ("bad_request", "The request cannot be served.", None)
    )
    headers = dict(error.headers) if error.headers else None
    return error_answer(AppError(code, message, hint, status=error.status_code), headers)


def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    names = sorted({str(entry["loc"][-1]) for entry in error.errors()})
    said = f"These parameters cannot be read: {', '.join(names)}."
    return error_answer(AppError("invalid_parameter", said, "See /docs.", status=422))


def _ledger_error(request: Request, error: Exception) -> Response:
    """The text of a driver's error may quote values, so only its kind is told and logged."""
    known = request.scope[NUMBER]
    logger.error("request %s: the ledger cannot be read: %s", known, describe(error))
    return error_answer(ledger_unavailable())


class Faults:
    """The innermost middleware: an unforeseen error becomes a 500 of the usual shape, and one
    line in the log without the error's text. Answers of status 500 and above carry the id that the
    log names, in ``x-request-id``."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        number = scope[NUMBER] = secrets.token_hex(4)

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] in ("http.response.start", "websocket.accept")
            if message["type"] == "http.response.start" and message["status"] >= 500:
                message["headers"] = [*message.get("headers", ()), (HEADER, number.encode())]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            if scope["type"] not in ("http", "websocket"):
                raise
            logger.error(
                "request %s: %s %s failed: %s",
                number, scope["type"], scope["path"], describe(error),
            )  # fmt: skip
            if started:
                raise  # the server cuts the answer short, so that nobody takes it for whole
            await refuse(scope, receive, watch, INTERNAL)


INTERNAL = AppError(
    "internal_error",
    "Warmline failed to answer this.",
    "The log says where. Turns are not affected.",
    status=500,
)
