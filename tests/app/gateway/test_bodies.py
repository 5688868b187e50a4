import contextlib
import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from app.gateway import bodies
from app.gateway.wire import ClientGone, Refusal

MIB = 1024 * 1024
LIMIT = 4 * MIB
TEXT = b'{"input": "' + b"all the words of a long conversation " * 400 + b'"}'


def receiver(*chunks, gone=False):
    messages = [{"type": "http.request", "body": c, "more_body": True} for c in chunks]
    if gone:
        messages.append({"type": "http.disconnect"})
    else:
        messages[-1]["more_body"] = False
    source = iter(messages)

    async def receive():
        return next(source)

    return receive


async def read(data, encoding=None, limit=LIMIT, **more):
    headers = (("content-encoding", encoding),) if encoding else ()
    return await bodies.read(receiver(data), headers, limit, **more)


async def refused(*args, **kwargs):
    with pytest.raises(Refusal) as caught:
        await read(*args, **kwargs)
    return caught.value


def stream_zstd(data):
    """As a streaming encoder writes it: without the content's size in the header."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(data) + writer.flush()


def with_checksum(data):
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


SKIPPABLE = (0x184D2A53).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
ENCODED = {
    "gzip": gzip.compress(TEXT),
    "gzip of two members": gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
    "gzip with padding": gzip.compress(TEXT) + b"\0" * 64,
    "zstd": zstandard.compress(TEXT),
    "zstd, streamed": stream_zstd(TEXT),
    "zstd with a checksum": with_checksum(TEXT),
    "zstd of two frames": zstandard.compress(TEXT[:100]) + stream_zstd(TEXT[100:]),
    "zstd after a skippable frame": SKIPPABLE + zstandard.compress(TEXT),
}


async def test_a_body_in_chunks_is_joined_in_order():
    assert await bodies.read(receiver(b"ab", b"", b"cd", b"e"), (), LIMIT) == b"abcde"


async def test_a_client_that_leaves_in_mid_body_is_gone():
    with pytest.raises(ClientGone):
        await bodies.read(receiver(b"ab", gone=True), (), LIMIT)


@pytest.mark.parametrize("encoding", ["identity", "", " , identity"])
async def test_identity_is_no_encoding(encoding):
    assert await read(b"abc", encoding) == b"abc"


@pytest.mark.parametrize("name", ENCODED)
async def test_a_compressed_body_is_decoded(name):
    assert await read(ENCODED[name], name[:4]) == TEXT


@pytest.mark.parametrize("spelling", ["GZIP", "x-gzip", " gzip "])
async def test_names_of_encodings_are_read_in_any_spelling(spelling):
    assert await read(ENCODED["gzip"], spelling) == TEXT


@pytest.mark.parametrize("encoding", ["br", "deflate", "snappy", "gzip, zstd"])
async def test_an_unknown_encoding_is_415_and_names_the_known_ones(encoding):
    refusal = await refused(b"x", encoding)
    assert (refusal.status, refusal.headers) == (
        415,
        (("accept-encoding", "gzip, zstd, identity"),),
    )


@pytest.mark.parametrize("name", [name for name in ENCODED if "two" not in name])
def test_every_truncation_is_400(name):
    data = ENCODED[name]
    whole = len(data) - (64 if "padding" in name else 0)
    shortest = len(SKIPPABLE) + 1 if "skippable" in name else 0
    for cut in range(shortest, whole):
        with pytest.raises(Refusal) as caught:
            bodies.inflate(name[:4], data[:cut], LIMIT)
        assert caught.value.status == 400, cut


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_what_is_not_compressed_at_all_is_400(encoding):
    assert (await refused(b'{"model": "m"}', encoding)).status == 400


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_garbage_after_the_end_is_400(encoding):
    assert (await refused(ENCODED[encoding] + b"garbage", encoding)).status == 400


async def test_a_wrong_checksum_is_400():
    data = bytearray(with_checksum(TEXT))
    data[-1] ^= 0xFF
    assert (await refused(bytes(data), "zstd")).status == 400


async def test_a_body_of_exactly_the_limit_passes_and_one_byte_more_is_413():
    assert len(await read(b"x" * LIMIT)) == LIMIT
    assert (await refused(b"x" * (LIMIT + 1))).status == 413


async def test_a_declared_length_beyond_the_limit_is_413_before_anything_is_read():
    async def receive():
        raise AssertionError("nothing may be read")

    with pytest.raises(Refusal) as caught:
        await bodies.read(receive, (("content-length", str(LIMIT + 1)),), LIMIT)
    assert caught.value.status == 413


def gzip_bomb(size):
    compressor = zlib.compressobj(9, wbits=31)
    block = b"\0" * MIB
    return b"".join(compressor.compress(block) for _ in range(size // MIB)) + compressor.flush()


def zstd_bomb(size):
    """Blocks of one repeated byte: four bytes for 128 KiB, and no size in the header."""
    head = (0xFD2FB528).to_bytes(4, "little") + b"\x00" + bytes([(17 - 10) << 3])
    count = size // (128 * 1024)
    blocks = [
        ((1 if i == count - 1 else 0) | 1 << 1 | (128 * 1024) << 3).to_bytes(3, "little") + b"\0"
        for i in range(count)
    ]
    return head + b"".join(blocks)


def test_the_bomb_of_this_test_is_valid_zstd():
    assert bodies.inflate("zstd", zstd_bomb(MIB), LIMIT) == b"\0" * MIB


@pytest.mark.parametrize(
    ("encoding", "bomb"), [("gzip", gzip_bomb(512 * MIB)), ("zstd", zstd_bomb(1024 * MIB))]
)
def test_a_bomb_is_413_and_takes_no_memory(encoding, bomb):
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as caught:
            bodies.inflate(encoding, bomb, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.status == 413
    assert peak < 4 * LIMIT


def test_a_size_claimed_in_the_header_is_413_before_anything_is_inflated():
    head = zstandard.ZstdCompressor().compress(b"\0" * (LIMIT + 1))
    with pytest.raises(Refusal) as caught:
        bodies.inflate("zstd", head, LIMIT)
    assert caught.value.status == 413


def test_a_window_of_gigabytes_is_413():
    """Descriptor: no single segment, no size; window log 31."""
    head = (0xFD2FB528).to_bytes(4, "little") + b"\x00" + bytes([(31 - 10) << 3])
    empty = (1).to_bytes(3, "little")
    with pytest.raises(Refusal) as caught:
        bodies.inflate("zstd", head + empty, LIMIT)
    assert caught.value.status == 413


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=5_000), level=st.integers(1, 19), chunk=st.integers(1, 700))
def test_what_was_compressed_comes_back_byte_for_byte(data, level, chunk):
    writer = zstandard.ZstdCompressor(level=level).compressobj()
    pieces = [writer.compress(data[i : i + chunk]) for i in range(0, len(data), chunk)]
    assert bodies.inflate("zstd", b"".join(pieces) + writer.flush(), LIMIT) == data
    assert bodies.inflate("gzip", gzip.compress(data, min(level, 9)), LIMIT) == data


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), encoding=st.sampled_from(["gzip", "zstd"]))
def test_no_bytes_raise_anything_but_a_refusal(data, encoding):
    starts = {"gzip": b"\x1f\x8b\x08", "zstd": (0xFD2FB528).to_bytes(4, "little")}
    for candidate in (data, starts[encoding] + data):
        with contextlib.suppress(Refusal):
            bodies.inflate(encoding, candidate, LIMIT)
