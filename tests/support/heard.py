"""The ledger writer's word that it cannot write, waited for."""

from __future__ import annotations

import logging
import threading

from app.ledger.writer import LedgerWriter


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._trouble = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "cannot be written" in record.getMessage():
            self._trouble.set()

    def until_retrying(self, writer: LedgerWriter) -> None:
        assert self._trouble.wait(20)
        assert writer.retrying
