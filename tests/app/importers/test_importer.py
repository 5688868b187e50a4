from app.importers.importer import Skipped


def test_a_skipped_record_is_told_by_line_and_column():
    assert "line 17: started_at is no time" == str(Skipped(17, "is no time", "started_at"))
    assert "line 3: is no CSV" == str(Skipped(3, "is no CSV"))
