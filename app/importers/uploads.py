"""Files that somebody sends to be imported: in a private folder of this process.

The folder lies beside the journal and is made with the first file. It is locked for as long as the
process lives, so that what a killed one has left can be told and removed at the next start.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from app.errors import AppError
from app.ledger.journal import segments

MOST_FILES = 20_000
"""Of one import."""
_DEPTH = 32
_NAME_BYTES = 240
_DRAFTS = ".drafts"


class Draft:
    """A file that is being received."""

    def __init__(self, uploads: Uploads, file: BinaryIO) -> None:
        self._uploads = uploads
        self._file = file
        self.size = 0

    def write(self, data: bytes) -> None:
        """Raises ``AppError`` where there is no room."""
        self._uploads.reserve(len(data))
        self.size += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise _no_room(error) from None


class Uploads:
    def __init__(self, root: Path, limit: int) -> None:
        """``limit``: bytes of all files that lie here at a time."""
        self.limit = limit
        self.root = root
        self._own: segments.Directory | None = None
        self._bytes = 0
        self._numbers = 0
        self._sizes: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    def take_over(self) -> list[str]:
        """Remove what processes have left that are no more; the imports that it was of."""
        found: list[str] = []
        for left in segments.leftovers(self.root):
            found += [path.name for path in left.path.iterdir() if path.is_dir()]
            left.remove()
        return found

    def files(self, import_id: str) -> dict[str, int]:
        """The size of each file of an import that is there as a whole, by its name."""
        with self._lock:
            return dict(self._sizes.get(import_id, {}))

    def tops(self, import_id: str) -> list[Path]:
        """Files that were sent by themselves, and folders."""
        folder = self._folder(import_id)
        names = {name.partition("/")[0] for name in self.files(import_id)}
        return [folder / name for name in sorted(names)]

    @contextlib.contextmanager
    def receiving(self, import_id: str, name: str, expected: int | None = None) -> Iterator[Draft]:
        """A draft that becomes the file of this name when the block ends well; it replaces one that
        is there. ``expected``: how large it will be, as far as it is known. Raises ``AppError``."""
        place = checked(name)
        if expected is not None:
            self._refuse_beyond(expected)
        if len(self.files(import_id)) >= MOST_FILES:
            raise AppError(
                "too_large", f"An import has at most {MOST_FILES:,} files.", "Make two of it.", 413
            )
        with self._lock:
            self._numbers += 1
            number = self._numbers
        draft: Draft | None = None
        path: Path | None = None
        kept = False
        try:
            try:
                folder = self._folder(import_id)
                (folder / _DRAFTS).mkdir(mode=0o700, exist_ok=True)
                path = folder / _DRAFTS / str(number)
                with path.open("xb") as file:
                    draft = Draft(self, file)
                    yield draft
                target = folder / place
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.replace(target)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                raise _bad_name("It is the name of another file's folder.") from None
            except OSError as error:
                raise _no_room(error) from None
            self._keep(import_id, name, draft.size)
            kept = True
        finally:
            if not kept:
                self._release(draft.size if draft else 0)
                if path is not None:
                    path.unlink(missing_ok=True)

    def reserve(self, size: int) -> None:
        with self._lock:
            if self._bytes + size > self.limit:
                raise self._too_large()
            self._bytes += size

    def remove(self, import_id: str) -> None:
        """Delete the files of an import."""
        with self._lock:
            self._bytes -= sum(self._sizes.pop(import_id, {}).values())
            own = self._own
        if own is not None:
            shutil.rmtree(own.path / import_id, ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.remove()

    def _folder(self, import_id: str) -> Path:
        with self._lock:
            if self._own is None:
                self._own = segments.create(self.root)
            folder = self._own.path / import_id
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _keep(self, import_id: str, name: str, size: int) -> None:
        with self._lock:
            sizes = self._sizes.setdefault(import_id, {})
            self._bytes -= sizes.get(name, 0)
            sizes[name] = size

    def _release(self, size: int) -> None:
        with self._lock:
            self._bytes -= size

    def _refuse_beyond(self, size: int) -> None:
        with self._lock:
            if self._bytes + size > self.limit:
                raise self._too_large()

    def _too_large(self) -> AppError:
        return AppError(
            "too_large",
            f"Uploads may take {self.limit:,} bytes at a time.",
            "Compress the files (zstd, gzip), send fewer at once, raise the setting import_bytes, "
            "or run warmline import beside the files.",
            status=413,
        )


def checked(name: str) -> PurePosixPath:
    """A file's name, with the folders that it was in. Raises ``AppError``: it leads elsewhere, or
    could not be written down."""
    parts = name.split("/")
    if len(parts) > _DEPTH:
        raise _bad_name(f"It lies more than {_DEPTH} folders deep.")
    for part in parts:
        if part in ("", ".", "..", _DRAFTS) or not part.isprintable():
            raise _bad_name("It is a plain name, after the names of folders and slashes if any.")
        if len(part.encode()) > _NAME_BYTES:
            raise _bad_name(f"A name has at most {_NAME_BYTES} bytes.")
    return PurePosixPath(*parts)


def _bad_name(hint: str) -> AppError:
    return AppError("bad_name", "The file cannot be taken under this name.", hint, status=422)


def _no_room(error: OSError) -> AppError:
    return AppError(
        "no_room",
        f"The file cannot be written down ({error.strerror or type(error).__name__}).",
        "Look for room beside the journal (setting journal_dir).",
        status=507,
    )
