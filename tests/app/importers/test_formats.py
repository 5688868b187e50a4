import pytest

from app.importers.formats import IMPORTERS, detect
from app.importers.importer import NotReadable
from tests.support.importing import as_csv, as_jsonl
from tests.support.rows import make_row


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (as_csv([]), "csv"),
        (as_csv([make_row()], bom=True), "csv"),
        (b"tenant,started_at,turn_id\n", "csv"),
        (b"turn_id;started_at;tenant\n", "csv"),  # which says what is wrong with it
        (as_jsonl([make_row()]), "jsonl"),
        (b"t,input\n", "neutral"),
        (b"input;t\n", "neutral"),  # which says what is wrong with it
        (b'\n{"t":1,"input":2}\n', "neutral"),
        (b'{"timestamp":"t","type":"session_meta","payload":{}}\n', "codex"),
        (b'{"timestamp":"t","ordinal":3,"type":"event_msg","payload":{"type":"x"}}\n', "codex"),
        (b'\x00\x00{"timestamp":"t","type":"turn_context","payload":{"cut', "codex"),
        (b'{"payload":{},"type":"compacted"}\n', "codex"),
        (b'{"id":"s","timestamp":"t","instructions":null}\n', "codex"),
        (b'{"ts":"t","input":3,"output":4}\n', "lingtai"),
        (b'{"sessionId":"s","uuid":"u"}\n', "claude-code"),
        (b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"c"}\n', "pi"),
        (b'[{"request_id":"r","prompt_tokens":1,"startTime":"t"}]', "litellm"),
        (b"request_id,startTime,prompt_tokens\n", "litellm"),
        (b'\n{"torn":\n' + as_jsonl([make_row()]), "jsonl"),
    ],
)
def test_a_format_is_told_by_what_is_in_the_file(data: bytes, name: str):
    assert name == detect(data).name


def test_formats_have_different_names():
    assert len(IMPORTERS) == len({importer.name for importer in IMPORTERS})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "It is empty."),
        (b"\xff\xfet\x00", "UTF-16"),
        (b"SQLite format 3\x00", "warmline export"),
        (b"PK\x03\x04", "workbook"),
        (b"\x7fELF\x00", "no text"),
        (b"a,b\n1,2\n", "not a format that can be imported"),
        (b'{"model":"a"}\n', "not a format that can be imported"),
        (b"[1]\n", "not a format that can be imported"),
        (b'{"type":"thread.started","thread_id":"t"}\n', "tells no times"),
    ],
)
def test_a_file_of_anything_else_is_told_as_what_it_is(data: bytes, message: str):
    with pytest.raises(NotReadable, match=message):
        detect(data)
