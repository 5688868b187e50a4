"""The states compared with another reading of the same rules.

``expected`` keeps no state. It looks at all verdicts so far and asks of them what the rules say in
words: since when is it bad without a pause, since when is it good, were the last three windows
empty.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.alerts import states
from app.alerts.states import Memory
from tests.support.alerts import MINUTE
from tests.support.verdicts import MEASURES, reading, rule_of

POLICIES = ("no_data", "ok", "alerting", "keep_last")
histories = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(sorted(MEASURES))), min_size=1, max_size=40
)


class History:
    """``times`` in minutes and ``verdicts`` up to and including index ``last``."""

    def __init__(self, rule, policy, times, verdicts):
        self.rule, self.policy, self.times, self.verdicts = rule, policy, times, verdicts
        self.alerts = self._alerts()

    def bad(self, n):
        verdict = self.verdicts[n]
        return verdict in ("breach", "worse") or (verdict == "absent" and self.policy == "alerting")

    def good(self, n):
        verdict = self.verdicts[n]
        return verdict == "clear" or (verdict == "absent" and self.policy == "ok")

    def middling(self, n):
        return self.verdicts[n] == "between"

    def gone(self, n):
        return (
            self.policy == "no_data" and n >= 2 and self.verdicts[n - 2 : n + 1] == ["absent"] * 3
        )

    def bad_since(self, n, after):
        """The first bad window from which on nothing was good, middling or gone, up to n."""
        calm = [
            m for m in range(after + 1, n + 1) if self.good(m) or self.middling(m) or self.gone(m)
        ]
        since = calm[-1] if calm else after
        return next((m for m in range(since + 1, n + 1) if self.bad(m)), None)

    def good_since(self, n, start):
        """The first good window of an alert from which on nothing was bad or middling, up to n."""
        trouble = [m for m in range(start, n + 1) if self.bad(m) or self.middling(m)]
        return next((m for m in range(trouble[-1] + 1, n + 1) if self.good(m)), None)

    def held(self, since, n, seconds):
        return since is not None and (self.times[n] - self.times[since]) * 60 >= seconds

    def _alerts(self):
        """Pairs of the index at which an alert begins and the one at which it ends, or None."""
        found = []
        n = 0
        while n < len(self.verdicts):
            after = found[-1][1] if found else -1
            since = self.bad_since(n, after)
            if not (self.bad(n) and self.held(since, n, self.rule.pending_for)):
                n += 1
                continue
            ends = (m for m in range(n + 1, len(self.verdicts)) if self.ends(m, n))
            end = next(ends, None)
            found.append((n, end))
            if end is None:
                break
            n = end + 1
        return found

    def ends(self, n, start):
        recovered = self.good(n) and self.held(
            self.good_since(n, start), n, self.rule.keep_firing_for
        )
        return recovered or self.gone(n)

    def state(self):
        n = len(self.verdicts) - 1
        start, end = self.alerts[-1] if self.alerts else (None, -1)
        if start is not None and end is None:
            return "firing" if self.good_since(n, start) is None else "recovering"
        if self.bad_since(n, end) is not None:
            return "pending"
        return "no_data" if self.shows_no_data(n) else "inactive"

    def shows_no_data(self, n):
        """Nothing fires and nothing waits."""
        match self.policy:
            case "ok" | "keep_last":
                return False
            case "alerting":
                return self.verdicts[n] == "lacking"
        if not self.rule.group_by:
            return self.verdicts[n] in ("lacking", "absent")
        with_rows = [m for m in range(n + 1) if self.verdicts[m] != "absent"]
        return bool(with_rows) and self.verdicts[with_rows[-1]] == "lacking" and not self.gone(n)

    def absence(self):
        """Of the last alert: whether no window crossed, from the wait before it to its end."""
        if not self.alerts:
            return False
        start, end = self.alerts[-1]
        before = self.alerts[-2][1] if len(self.alerts) > 1 else -1
        since = self.bad_since(start, before)
        until = len(self.verdicts) if end is None else end
        return not any(v in ("breach", "worse") for v in self.verdicts[since:until])

    def peak(self):
        if not self.alerts:
            return None
        start, end = self.alerts[-1]
        shares = {"breach": 0.3, "worse": 0.6, "between": 0.15, "clear": 0.05}
        return max((shares[v] for v in self.verdicts[start:end] if v in shares), default=None)


@settings(max_examples=400)
@given(
    history=histories,
    policy=st.sampled_from(POLICIES),
    pending=st.sampled_from([0, 1, 60, 120, 300]),
    keep=st.sampled_from([0, 1, 60, 120, 300]),
    grouped=st.booleans(),
)
def test_the_states_are_what_the_history_says(history, policy, pending, keep, grouped):
    rule = rule_of(
        no_data=policy,
        pending_for=pending,
        keep_firing_for=keep,
        group_by=["model"] if grouped else [],
    )
    memory, minute = Memory(), 0
    times: list[int] = []
    verdicts: list[str] = []
    for passed, verdict in history:
        minute += passed
        times.append(minute)
        verdicts.append(verdict)
        before = memory.state
        memory, moved = states.step(rule, memory, reading(rule, verdict), minute * MINUTE)
        told = History(rule, policy, times, verdicts)

        assert memory.state == told.state()
        assert [(t.before, t.after) for t in moved] == (
            [] if before is memory.state else [(before, memory.state)]
        )
        if told.alerts:
            start, end = told.alerts[-1]
            assert memory.started_at == times[start] * MINUTE
            assert memory.ended_at == (None if end is None else times[end] * MINUTE)
            assert memory.peak == told.peak()
            if memory.fires:
                assert memory.absence is told.absence()
        else:
            assert (memory.started_at, memory.ended_at, memory.peak) == (None, None, None)
