"""For all tests: how many random examples a property meets, and that each may take its time."""

from hypothesis import settings

# On top of what is loaded already: where CI is set, that is Hypothesis' own profile for it.
# Properties that need more say so; the whole suite has to stay below ten minutes.
settings.register_profile("suite", settings.default, deadline=None, max_examples=60)
settings.load_profile("suite")
