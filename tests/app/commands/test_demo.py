from tests.support.commands import run


def test_the_demo_serves_at_the_port_it_is_given(monkeypatch):
    seen = []
    monkeypatch.setattr("app.demo.run.run", lambda _make, *, port: seen.append(port))
    result = run("demo", "--port", "8799")
    assert (0, [8799]) == (result.exit_code, seen), result.output


def test_ctrl_c_while_the_demo_starts_is_no_fault(monkeypatch):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.demo.run.run", stopped)
    result = run("demo")
    assert (0, "") == (result.exit_code, result.output)
