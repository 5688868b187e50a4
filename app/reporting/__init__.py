"""What a report tells of a ledger, in a terminal, as values and as a page; and the gate of CI."""
