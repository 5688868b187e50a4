from tests.support.commands import run


def test_serve_runs_the_application_with_the_settings(monkeypatch):
    seen = {}
    monkeypatch.setattr("app.main.create_app", lambda settings: "the application")
    monkeypatch.setattr("app.server.configure_logging", lambda level: seen.update(level=level))
    monkeypatch.setattr(
        "app.server.run", lambda app, settings: seen.update(app=app, settings=settings)
    )
    result = run("serve", "--port", "8799", "--pseudonymize", "--log-level", "error")
    assert (0, "error") == (result.exit_code, seen["level"]), result.output
    assert ("the application", True, 8799) == (
        seen["app"],
        seen["settings"].pseudonymize,
        seen["settings"].port,
    )
