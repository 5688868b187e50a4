"""Content encodings of request bodies."""

import gzip
import zlib

import pytest
import zstandard

from app.demo.provider.encodings import decode_body
from app.demo.provider.errors import ApiError

ENCODED = {
    "": b"body",
    "identity": b"body",
    "gzip": gzip.compress(b"body"),
    "deflate": zlib.compress(b"body"),
    "zstd": zstandard.ZstdCompressor().compress(b"body"),
    " ZSTD ": zstandard.ZstdCompressor().compress(b"body"),
}


@pytest.mark.parametrize("name", ENCODED)
def test_each_encoding_is_undone(name):
    assert decode_body(ENCODED[name], name) == b"body"


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_a_broken_body_is_a_400(name):
    with pytest.raises(ApiError) as refused:
        decode_body(b"not compressed", name)
    assert refused.value.status == 400


def test_an_unknown_encoding_is_a_415():
    with pytest.raises(ApiError) as refused:
        decode_body(b"x", "br")
    assert refused.value.status == 415
