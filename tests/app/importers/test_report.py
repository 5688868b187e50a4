from collections import Counter

from app.importers.importer import Skipped
from app.importers.report import cut, listing, news, printable, text
from app.importers.run import FileReport, Report
from app.ledger.imports import PURGED, Counts, Import
from tests.support.rows import START_MS


def file(name: str, new: int = 0, **reasons: int) -> FileReport:
    made = FileReport(name, "csv", Counts(new))
    for reason, count in reasons.items():
        for line in range(count):
            made.skip(Skipped(line + 2, reason))
    return made


def test_what_went_wrong_comes_first_and_the_sum_last():
    broken = file("c.csv", 5)
    broken.failure = "Its compressed data end early."
    named = FileReport("d.txt", failure="It is empty.")
    report = Report("abcd", [file("a.csv", 1), file("b.csv", 2, bad=9), broken, named])
    report.files[1].remarks.append("Columns are left out.")
    assert [
        "c.csv (csv): 5 new, 0 known",
        "  Its compressed data end early. What came before is imported.",
        "d.txt: It is empty.",
        "b.csv (csv): 2 new, 0 known, 9 skipped",
        "  Columns are left out.",
        "a.csv (csv): 1 new, 0 known",
        "  9 skipped: bad (b.csv:2, b.csv:3, b.csv:4, …).",
        "8 new, 0 known, 9 skipped. Undo with: warmline import --undo abcd",
    ] == text(report)


def test_calls_that_a_gateway_had_seen_are_told():
    told = text(Report("abcd", [file("a.jsonl", 9)], merged=7, differing=2))
    assert (
        "7 calls of these a gateway had seen: one row each, the gateway's. "
        "Of 2 the log has other token counts: the gateway's count."
    ) in told
    assert "1 call of these" in text(Report("abcd", [file("a.jsonl", 9)], merged=1))[-2]


def test_it_fits_a_screen_whatever_there_is_to_tell():
    files = [file(f"{n}.csv", 1, **{f"reason{n}": n + 1, f"other{n}": 1}) for n in range(500)]
    for one in files:
        one.failure = "x" * 999
        one.remarks += ["y" * 999] * 9
    report = Report("abcd", files, ignored=7, strangers=2)
    lines = text(report)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 340
    assert "and 494 other files" in lines
    assert any("did not know 2 tenants" in line for line in lines)
    assert "Passed over: 7 files of formats that this version cannot import." in lines


def test_a_reason_says_what_can_be_done():
    made = FileReport("a", "csv", Counts(skipped=Counter({PURGED: 2})))
    assert (
        "  2 skipped: was purged from this ledger. Take them all the same with --purged."
        in text(Report("abcd", [made]))
    )


def test_nothing_new_needs_no_undoing():
    assert ["a.csv (csv): 0 new, 0 known", "0 new, 0 known, 0 skipped."] == text(
        Report("abcd", [file("a.csv")])
    )


def test_files_that_have_not_changed_are_told_and_are_no_failure():
    said = "Imported before, and unchanged: 2 files."
    assert [said] == text(Report(None, [], unchanged=2))
    assert said in text(Report("abcd", [file("a.csv")], unchanged=2))
    assert ["There was nothing to import."] == text(Report(None, []))


def test_news_of_a_watch_are_new_rows_and_failures_and_nothing_else():
    assert [] == news(Report("abcd", [file("a.csv", bad=3)]), START_MS)
    files = [file(name, 1_000) for name in ("a", "b", "c", "d")]
    named = FileReport("e", failure="It cannot be read (Permission denied).")
    assert [
        "2027-01-15T08:00:00Z  e: It cannot be read (Permission denied).",
        "2027-01-15T08:00:00Z  4,000 new in a, b, c, …",
    ] == news(Report("abcd", [*files, named]), START_MS)


def test_a_terminal_is_not_given_orders():
    assert "a\ufffd[2Jb" == printable("a\x1b[2Jb")
    assert "\ufffd" == printable("\udc80")
    assert 10 == len(printable("x" * 99, 10))


def test_what_is_too_long_for_its_place_is_cut():
    assert ["abc", "ab…"] == [cut("abc", 3), cut("abcd", 3)]


def test_imports_are_listed_in_columns():
    one = Import("abcd", START_MS, None, "done", "a.csv", "csv", 1_234, 5, 0, {})
    assert [
        "abcd  2027-01-15T08:00:00Z  done            1,234 new         5 known       0 skipped  a.csv"
    ] == listing([one])
