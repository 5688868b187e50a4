"""Alerts: rules over the ledger, their states, and the webhooks that tell of them.

Pure, from the rows that were counted to what is told: ``rules``, ``signals``, ``memory``,
``states``, ``groups``, ``evaluation``, ``records``; and the words and bodies of messages. The rest
reads or writes the database or the network.
"""
