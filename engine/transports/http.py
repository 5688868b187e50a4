"""The upstream over HTTP, by aiohttp."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator

import aiohttp

from engine.errors import ConnectFailed, ConnectionLost
from engine.transports.base import Headers

_CHUNK = 64 * 1024


class AiohttpAnswer:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.raw_headers
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ConnectionLost(None, sent=True) from error

    async def close(self) -> None:
        # release() would wait for nothing: it closes a connection whose body is not at its end.
        self._response.release()


class Http:
    """One client session for all upstreams; ``aclose`` ends it."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=aiohttp.TCPConnector(limit=0),
                skip_auto_headers={"User-Agent", "Accept", "Accept-Encoding", "Content-Type"},
            )
        return self._session

    async def post(self, url: str, headers: Headers, body: bytes, within: float) -> AiohttpAnswer:
        limits = aiohttp.ClientTimeout(total=None, sock_connect=within)
        try:
            response = await self._open().post(
                url,
                data=io.BytesIO(body),
                headers=list(headers),
                timeout=limits,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError as error:
            raise ConnectFailed("refused") from error
        except (aiohttp.ConnectionTimeoutError, TimeoutError) as error:
            raise ConnectFailed("timeout") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ConnectionLost(None, sent=True) from error
        return AiohttpAnswer(response)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
