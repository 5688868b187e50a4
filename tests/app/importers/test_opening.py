import gzip
from pathlib import Path

import pytest
import zstandard

from app.importers.importer import NotReadable
from app.importers.opening import Damaged, opened

TEXT = b"".join(b"line %d\n" % number for number in range(5_000))


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def pieces(data: bytes, pack) -> bytes:
    """Several streams in a row, as when a file is compressed bit by bit."""
    return pack(data[:1_000]) + pack(data[1_000:])


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        gzip.compress(TEXT),
        zstd(TEXT),
        pieces(TEXT, gzip.compress),
        pieces(TEXT, zstd),
        gzip.compress(TEXT) + bytes(512),
    ],
)
def test_a_file_is_read_whatever_it_is_compressed_with_and_called(data: bytes, tmp_path: Path):
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    with opened(path) as found:
        assert TEXT == found.file.read()
        assert (len(data), len(data)) == (found.size, found.position())


def test_how_far_it_is_read_is_told_in_bytes_of_the_file(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(TEXT * 10)
    with opened(path) as found:
        found.file.readline()
        assert 0 < found.position() < found.size


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_what_comes_before_an_early_end_is_read_and_the_end_is_told(pack, tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(pieces(TEXT, pack)[:-3])
    with opened(path) as found:
        head = found.file.read(100)
        with pytest.raises(Damaged, match="end early"):
            found.file.read()
    assert TEXT[:100] == head


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_data_that_are_none_are_told(pack, tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(pack(TEXT)[:9] + b"\xff" * 5_000)
    with opened(path) as found, pytest.raises(Damaged, match="damaged"):
        found.file.read()


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(NotReadable, match="No such file"), opened(tmp_path / "x"):
        pass
