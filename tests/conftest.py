"""For all tests: a random example may take its time, whatever else the machine does."""

from hypothesis import settings

# On top of what is loaded already: where CI is set, that is Hypothesis' own profile for it.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")
