"""The provider's error envelopes, as HTTP bodies and as WebSocket frames."""

from __future__ import annotations

from .wire import Json


class ApiError(Exception):
    """A request that the provider refuses.

    ``evicts``: a continuation that fails with it loses the connection's copy of the response.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        kind: str = "invalid_request_error",
        headers: tuple[tuple[str, str], ...] = (),
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.kind = kind
        self.headers = headers
        self.closes = closes
        """The connection is of no further use and is closed after the frame."""

    def error(self) -> Json:
        return {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }

    def body(self) -> Json:
        """The HTTP body."""
        return {"error": self.error()}

    def frame(self) -> Json:
        """The WebSocket frame: nested, and with the status, without which Codex would wait."""
        error = {
            "type": self.kind,
            "code": self.code,
            "message": self.message,
            "param": self.param,
        }
        return {"type": "error", "status": self.status, "error": error}


def previous_response_not_found(response_id: str) -> ApiError:
    return ApiError(
        f"Previous response with id '{response_id}' not found.",
        code="previous_response_not_found",
        param="previous_response_id",
    )


def connection_limit_reached() -> ApiError:
    return ApiError(
        "Responses websocket connection limit reached (60 minutes). "
        "Create a new websocket connection to continue.",
        code="websocket_connection_limit_reached",
        closes=True,
    )


def other_model(pinned: str) -> ApiError:
    return ApiError(
        f"This connection serves the model '{pinned}'. Open another for another model.",
        code="model_mismatch",
        param="model",
    )


def model_without_websocket(model: str) -> ApiError:
    return ApiError(
        f"The model '{model}' has no WebSocket mode.", code="model_not_supported", param="model"
    )


def unknown_parameter(name: str) -> ApiError:
    return ApiError(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def missing_parameter(name: str) -> ApiError:
    return ApiError(
        f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
    )


def invalid_type(name: str, expected: str) -> ApiError:
    return ApiError(
        f"Invalid type for '{name}': expected {expected}.", code="invalid_type", param=name
    )


def invalid_value(name: str, value: object, supported: str) -> ApiError:
    return ApiError(
        f"Invalid value: '{value}'. Supported values are: {supported}.",
        code="invalid_value",
        param=name,
    )


def unauthorized() -> ApiError:
    return ApiError(
        "You didn't provide an API key. Send it as 'Authorization: Bearer KEY'.",
        status=401,
        code="missing_api_key",
    )
