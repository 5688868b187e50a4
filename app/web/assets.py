"""The files of ``static/`` and Plotly, under URLs that change with their content.

Everything is read once, when the service starts, so that what a URL means cannot change while a
browser keeps it for ever. Relative imports between modules inherit the versioned folder.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import threading
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.errors import AppError

PLOTLY_FILE = "plotly.min.js"
IMMUTABLE = "public, max-age=31536000, immutable"
_LEVEL = 9
_LEAST_GAIN = 0.9
"""A body that gzip leaves larger than this share is sent as it is."""
# Said here and not looked up: on some machines the system's table knows .js as text/plain, and
# browsers then refuse to load modules.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class Asset:
    media_type: str
    body: bytes
    packed: bytes | None
    """gzip; None where it would gain nothing."""


def media_type(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def pack(name: str, body: bytes) -> Asset:
    packed = gzip.compress(body, _LEVEL, mtime=0)
    small = len(packed) <= len(body) * _LEAST_GAIN
    return Asset(media_type(name), body, packed if small else None)


class Assets:
    """``root`` is the folder of ``static/``; hidden files are not served."""

    def __init__(self, root: Path) -> None:
        files = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(root).parts)
        }
        digest = hashlib.blake2b(digest_size=6)
        for name, body in files.items():
            for part in (name.encode(), body):
                digest.update(len(part).to_bytes(8, "big"))
                digest.update(part)
        self.version = digest.hexdigest()
        self._assets = {name: pack(name, body) for name, body in files.items()}
        self.plotly_version = installed_version("plotly")
        self._plotly: Asset | None = None
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"/static/{self.version}"

    @property
    def plotly_url(self) -> str:
        return f"/static/{self._plotly_folder}/{PLOTLY_FILE}"

    @property
    def _plotly_folder(self) -> str:
        return f"plotly-{self.plotly_version}"

    def has(self, name: str) -> bool:
        return name in self._assets

    def find(self, folder: str, name: str) -> tuple[Asset, bool]:
        """A file, and whether the URL's folder is the one of today: only then may a browser keep
        it. A page that was opened before an upgrade still finds its modules. Blocks on Plotly's
        first use."""
        if folder == self._plotly_folder and name == PLOTLY_FILE:
            return self.plotly(), True
        asset = self._assets.get(name)
        if asset is None or folder.startswith("plotly-"):
            raise AppError("not_found", "There is no such file.", None, status=404)
        return asset, folder == self.version

    def plotly(self) -> Asset:
        """The bundle of the installed package; compressed once, which takes about half a second."""
        with self._lock:
            if self._plotly is None:
                self._plotly = pack(PLOTLY_FILE, plotly_path().read_bytes())
            return self._plotly

    def routes(self) -> list[Route]:
        return [Route("/static/{folder}/{name:path}", self._serve, methods=["GET"])]

    def _serve(self, request: Request) -> Response:
        asset, current = self.find(request.path_params["folder"], request.path_params["name"])
        headers = {
            "cache-control": IMMUTABLE if current else "no-store",
            "content-type": asset.media_type,
            "vary": "accept-encoding",
        }
        if asset.packed is not None and takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(asset.packed, headers=headers | {"content-encoding": "gzip"})
        return Response(asset.body, headers=headers)


def plotly_path() -> Path:
    """Where the installed package keeps its bundle, found without importing the package."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise AppError("no_plotly", "The package plotly is not installed.", None, status=500)
    return Path(spec.origin).parent / "package_data" / PLOTLY_FILE


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` allows gzip; a weight of 0 forbids it."""
    for part in accept_encoding.lower().split(","):
        coding, _, parameters = part.strip().partition(";")
        if coding.strip() in ("gzip", "x-gzip", "*"):
            weight = parameters.strip().removeprefix("q=")
            return weight.strip("0.") != "" or not weight
    return False
