"""The transports offer what the driver asks of them."""

import inspect

import pytest

from engine.transports import base
from engine.transports.http import AiohttpAnswer, Http
from engine.transports.websocket import WebSocketConnection, WebSockets


@pytest.mark.parametrize(
    ("protocol", "made"),
    [(base.Connection, WebSocketConnection), (base.WebSocketTransport, WebSockets),
     (base.HttpTransport, Http), (base.HttpAnswer, AiohttpAnswer)],
)  # fmt: skip
def test_every_method_is_there_with_its_parameters(protocol, made):
    for name, method in vars(protocol).items():
        if not name.startswith("_") and inspect.isfunction(method):
            assert list(inspect.signature(getattr(made, name)).parameters) == list(
                inspect.signature(method).parameters
            )
