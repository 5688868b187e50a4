import stat

import pytest

from app.errors import AppError
from app.importers.uploads import Uploads, checked


@pytest.fixture
def uploads(tmp_path):
    made = Uploads(tmp_path / "uploads", 100)
    yield made
    made.close()


def put_pieces(uploads, pieces):
    with uploads.receiving("one", "a") as draft:
        for piece in pieces:
            if not isinstance(piece, int):
                raise piece
            draft.write(b"x" * piece)


def put(uploads, name, content, one="one"):
    with uploads.receiving(one, name) as draft:
        draft.write(content)


def test_a_file_lies_under_its_name_and_only_its_owner_can_read_it(uploads):
    put(uploads, "sessions/2026/a.jsonl", b"x")
    put(uploads, "b.jsonl", b"yz")
    assert {"sessions/2026/a.jsonl": 1, "b.jsonl": 2} == uploads.files("one")
    file, folder = uploads.tops("one")
    assert (b"yz", b"x") == (file.read_bytes(), (folder / "2026" / "a.jsonl").read_bytes())
    assert 0o700 == stat.S_IMODE(uploads.root.stat().st_mode)


def test_what_breaks_off_leaves_nothing_and_takes_no_room(uploads):
    for pieces in (90, ZeroDivisionError), (90, 90):
        with pytest.raises((AppError, ZeroDivisionError)):
            put_pieces(uploads, pieces)
    assert {} == uploads.files("one")
    put(uploads, "a", b"x" * 100)
    uploads.remove("one")
    put(uploads, "a", b"x" * 100, "two")


def test_a_file_under_the_name_of_a_folder_is_refused(uploads):
    put(uploads, "a/b", b"x")
    with pytest.raises(AppError) as refused:
        put(uploads, "a", b"x")
    assert "bad_name" == refused.value.code


def test_what_a_process_has_left_is_removed_and_that_of_a_living_one_stays(tmp_path):
    killed, living = Uploads(tmp_path, 100), Uploads(tmp_path, 100)
    put(killed, "a", b"x", "dead")
    put(living, "a", b"x", "alive")
    killed._own.close()  # as the kernel does it
    assert ["dead"] == Uploads(tmp_path, 100).take_over()
    assert b"x" == living.tops("alive")[0].read_bytes()
    living.close()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.jsonl", ".codex/sessions/a", "Ü b/c d.zst"])
def test_names_with_folders_are_kept(name):
    assert name == str(checked(name))


@pytest.mark.parametrize("name", ["/a", "a/../b", "a/", "a\nb", "\ud800", "/".join("a" * 33)])
def test_names_that_lead_elsewhere_or_cannot_be_written_are_refused(name):
    with pytest.raises(AppError):
        checked(name)
