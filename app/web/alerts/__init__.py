"""The JSON API of alerts (docs/api.md, "Alerts"), by subject."""
