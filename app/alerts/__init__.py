"""Alerts: rules over the ledger, their states, and the webhooks that tell of them.

Pure: ``rules``, ``signals``, ``states``. Everything else reads or writes the database or the
network.
"""
