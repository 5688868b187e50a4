"""Files that are sent to be imported, through the API."""

from __future__ import annotations

import gzip
import json

import pytest

from app.importers import service as importing
from app.ledger import imports
from tests.support.clock import START
from tests.support.site import BASE, Site, open_site

UPLOAD = {
    "origin": BASE,
    "x-warmline-upload": "1",
    "content-type": "application/octet-stream",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One for all: each test sends turns of its own."""
    opened = open_site(tmp_path_factory.mktemp("imports"))
    yield opened
    opened.close()


@pytest.fixture
def limit(site, monkeypatch):
    return lambda size: monkeypatch.setattr(site.web.imports.uploads, "limit", size)


def neutral(*turns: int) -> bytes:
    """A neutral log of these turns of one conversation, a minute apart."""
    lines = [
        {"t": START - 86_400 + 60 * turn, "chain": "c", "id": f"r{turn}", "input": 2_000 + turn}
        for turn in turns
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def begun(site: Site, **body: object) -> str:
    return site.ask("POST", "/api/import", body, status=201)["import"]["id"]


def send(site: Site, one: str, name: str, content: bytes, *, status: int = 201) -> dict:
    path = f"/api/import/{one}/files"
    answer = site.client.put(path, params={"name": name}, content=content, headers=UPLOAD)
    assert answer.status_code == status, answer.text
    return answer.json()


def start(site: Site, one: str) -> dict:
    """Start it, and wait until the thread has done all that it was given."""
    site.ask("POST", f"/api/import/{one}/start", {}, status=202)
    return ended(site, one)


def ended(site: Site, one: str) -> dict:
    site.web.imports.settle()
    return site.get(f"/api/import/{one}")["import"]


def test_what_is_sent_comes_to_the_ledger_and_is_told_line_by_line(site):
    one = begun(site)
    log = neutral(1, 2) + b'{"t": "soon", "input": 3}\n'
    assert send(site, one, "a.jsonl", log) == {"name": "a.jsonl", "bytes": len(log)}
    send(site, one, "b.jsonl.gz", gzip.compress(neutral(2, 3)))
    assert site.get(f"/api/import/{one}")["import"]["uploaded"][0]["name"] == "a.jsonl"

    told = start(site, one)

    assert (told["state"], told["rows"]) == ("done", {"new": 3, "known": 1})
    assert told["progress"]["done"] == told["progress"]["of"] > 0
    (reason,) = told["skipped"]["reasons"]
    assert (reason["records"], reason["examples"]) == (1, [{"file": "a.jsonl", "line": 3}])
    assert [(f["name"], f["new"], f["skipped"]) for f in told["report"]["files"]] == [
        ("a.jsonl", 2, 1),
        ("b.jsonl.gz", 1, 0),
    ]
    found = told["rows_in_ledger"]
    assert (found["rows"], found["sources"]) == (3, ["import:neutral"])
    span = {"from": found["from"], "to": found["to"]}
    assert site.get("/api/requests", source="import:neutral", **span)["count"] == 3
    assert one in [each["id"] for each in site.get("/api/import")["imports"]]
    assert uploaded(site) == []


def test_undoing_takes_away_the_rows_and_says_so(site):
    one = begun(site)
    send(site, one, "a.jsonl", neutral(11, 12))
    assert start(site, one)["rows_in_ledger"]["rows"] == 2
    site.ask("DELETE", f"/api/import/{one}", status=202)
    told = ended(site, one)
    assert (told["state"], told["rows_in_ledger"], told["kept"]) == ("undone", None, 0)


def test_an_import_of_the_command_line_is_listed_and_can_be_undone(site):
    imports.begin(site.engine, "cafe0001", 1_000, ["x.jsonl"])
    assert site.get("/api/import")["imports"][-1]["names"] == "x.jsonl"
    site.ask("DELETE", "/api/import/cafe0001", status=202)
    assert ended(site, "cafe0001")["state"] == "undone"
    assert site.ask("DELETE", "/api/import/none", status=404)["error"]["code"] == "no_import"


def test_files_of_one_import_know_each_other_by_their_folders(site):
    """LingTai's ledger is read with the events that lie beside it."""
    one = begun(site)
    usage = {"source": "main", "ts": "2026-11-29T10:00:00Z", "input": 10, "output": 1, "cached": 0}
    send(site, one, "a/logs/token_ledger.jsonl", json.dumps(usage).encode() + b"\n")
    send(site, one, "a/logs/events.jsonl", b'{"type": "noise", "ts": 1}\n')
    send(site, one, "a/.hidden", b"x")
    told = start(site, one)
    assert told["formats"] == ["lingtai"]
    assert told["report"]["passed_over"] == 0


def test_what_is_no_log_is_named_and_leaves_no_record(site):
    one = begun(site)
    send(site, one, "notes.txt", b"hello\n")
    told = start(site, one)
    assert told["state"] == "empty"
    (file,) = told["report"]["files"]
    assert "not a format" in file["failure"]
    assert one not in [record.id for record in imports.listed(site.engine)]


def test_an_upload_beyond_the_limit_is_refused_before_and_while_it_comes(site, limit):
    limit(100)
    one = begun(site)
    assert send(site, one, "a", b"x" * 101, status=413)["error"]["code"] == "too_large"
    pieces = iter([b"x" * 60, b"x" * 60])  # of unknown length
    answer = site.client.put(
        f"/api/import/{one}/files", params={"name": "a"}, content=pieces, headers=UPLOAD
    )
    assert answer.status_code == 413
    send(site, one, "a", b"x" * 100)
    send(site, one, "a", b"x" * 0)  # in its place
    send(site, one, "b", b"x" * 100)
    site.ask("DELETE", f"/api/import/{one}")


@pytest.mark.parametrize("name", ["", "../x", "/etc/passwd", "a//b", "a/./b", "a\x00b", "x" * 300])
def test_a_name_that_leads_elsewhere_is_refused(site, name):
    one = begun(site)
    assert send(site, one, name, b"x", status=422)["error"]["code"] == "bad_name"
    site.ask("DELETE", f"/api/import/{one}")
    assert uploaded(site) == []


def test_a_file_needs_this_servers_origin_and_a_header_that_no_form_can_set(site):
    one = begun(site)
    path = f"/api/import/{one}/files?name=a"
    without = {key: value for key, value in UPLOAD.items() if key != "x-warmline-upload"}
    foreign = UPLOAD | {"origin": "http://evil.example"}
    sent = [site.client.put(path, content=b"x", headers=h) for h in (without, foreign, UPLOAD)]
    assert [answer.status_code for answer in sent] == [415, 403, 201]
    site.ask("DELETE", f"/api/import/{one}")
    assert site.client.post("/api/import", content=b"x", headers=UPLOAD).status_code == 415


def test_an_upload_can_be_thrown_away_and_takes_nothing_after_its_start(site):
    one = begun(site)
    refused = site.ask("POST", f"/api/import/{one}/start", {}, status=409)
    assert refused["error"]["code"] == "no_files"
    send(site, one, "a.jsonl", neutral(1))
    assert site.ask("DELETE", f"/api/import/{one}") == {"deleted": one}
    assert uploaded(site) == []
    send(site, one, "a.jsonl", b"x", status=404)
    other = begun(site)
    send(site, other, "a.jsonl", neutral(1))
    start(site, other)
    assert send(site, other, "b", b"x", status=409)["error"]["code"] == "conflict"


def test_a_bomb_ends_at_the_limit_and_what_came_before_it_stays(site, monkeypatch, limit):
    monkeypatch.setattr(importing, "INFLATION", 2)
    limit(1 << 20)
    one = begun(site)
    send(site, one, "bomb.gz", gzip.compress(neutral(1) + b"\0" * (8 << 20)))
    told = start(site, one)
    assert told["state"] == "interrupted"
    assert told["failure"]["code"] == "too_large"
    assert "2,097,152 bytes when they are decompressed" in told["failure"]["message"]


def uploaded(site: Site) -> list[str]:
    """Files that lie in the folders of uploads."""
    root = site.web.imports.uploads.root
    found = (path for path in root.rglob("*") if path.is_file()) if root.is_dir() else ()
    return [path.name for path in found if path.name != "lock"]
