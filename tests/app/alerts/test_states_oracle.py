"""The states compared with another reading of the same rules.

``expected`` keeps no state. It looks at all verdicts so far and asks of them what the rules say in
words: since when is it bad without a pause, since when is it good, were the last three windows
empty.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts import states
from app.alerts.states import Memory
from tests.support.alerts import MINUTE
from tests.support.verdicts import MEASURES, reading, rule_of

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

POLICIES = ("no_data", "ok", "alerting", "keep_last")
# Every beginning of a history is compared, so short ones are not needed for their own sake.
histories = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(sorted(MEASURES))), min_size=12, max_size=40
)


class History:
    """``times`` in minutes and ``verdicts`` up to and including index ``last``."""

    def __init__(self, rule, policy, times, verdicts):
        self.rule, self.policy, self.times, self.verdicts = rule, policy, times, verdicts
        self.alerts = self._alerts()

    def crossed(self, n):
        return self.verdicts[n] in ("breach", "worse")

    def bad(self, n):
        return self.crossed(n) or (self.verdicts[n] == "absent" and self.policy == "alerting")

    def for_want_of_rows(self, since, n):
        """Nothing before n speaks for the fault but missing rows."""
        return not any(self.crossed(m) for m in range(since, n))

    def good(self, n, since):
        """``since`` is where the wait or the alert in question began."""
        verdict = self.verdicts[n]
        rows_again = verdict in ("between", "lacking") and self.for_want_of_rows(since, n)
        return verdict == "clear" or (verdict == "absent" and self.policy == "ok") or rows_again

    def middling(self, n, since):
        return self.verdicts[n] == "between" and not self.good(n, since)

    def gone(self, n):
        return (
            self.policy == "no_data" and n >= 2 and self.verdicts[n - 2 : n + 1] == ["absent"] * 3
        )

    def bad_since(self, n, after):
        """The first bad window from which on nothing was good, middling or gone, up to n."""
        for since in range(after + 1, n + 1):
            rest = range(since + 1, n + 1)
            if self.bad(since) and not any(
                self.good(m, since) or self.middling(m, since) or self.gone(m) for m in rest
            ):
                return since
        return None

    def good_since(self, n, start, since):
        """The first good window of an alert from which on nothing was bad or middling, up to n."""
        trouble = [m for m in range(start, n + 1) if self.bad(m) or self.middling(m, since)]
        return next((m for m in range(trouble[-1] + 1, n + 1) if self.good(m, since)), None)

    def held(self, since, n, seconds):
        return since is not None and (self.times[n] - self.times[since]) * 60 >= seconds

    def _alerts(self):
        """Of each alert the index where its wait began, where it fired and where it ended (or
        None)."""
        found = []
        n = 0
        while n < len(self.verdicts):
            after = found[-1][2] if found else -1
            since = self.bad_since(n, after)
            if not (self.bad(n) and self.held(since, n, self.rule.pending_for)):
                n += 1
                continue
            ends = (m for m in range(n + 1, len(self.verdicts)) if self.ends(m, n, since))
            end = next(ends, None)
            found.append((since, n, end))
            if end is None:
                break
            n = end + 1
        return found

    def ends(self, n, start, since):
        recovered = self.good(n, since) and self.held(
            self.good_since(n, start, since), n, self.rule.keep_firing_for
        )
        return recovered or self.gone(n)

    def state(self):
        n = len(self.verdicts) - 1
        since, start, end = self.alerts[-1] if self.alerts else (None, None, -1)
        if start is not None and end is None:
            return "firing" if self.good_since(n, start, since) is None else "recovering"
        if self.bad_since(n, end) is not None:
            return "pending"
        return "no_data" if self.shows_no_data(n) else "inactive"

    def shows_no_data(self, n):
        """Nothing fires and nothing waits."""
        match self.policy:
            case "ok" | "keep_last":
                return False
            case "alerting":
                return self.verdicts[n] == "lacking" and not self.ended_something(n)
        if not self.rule.group_by:
            return self.verdicts[n] in ("lacking", "absent")
        with_rows = [m for m in range(n + 1) if self.verdicts[m] != "absent"]
        return bool(with_rows) and self.verdicts[with_rows[-1]] == "lacking" and not self.gone(n)

    def ended_something(self, n):
        """A wait or an alert for want of rows, which leaves nothing to show at first."""
        over = [end for *_, end in self.alerts]
        before = [end for end in over if end is not None and end < n]
        return n in over or (n > 0 and self.bad_since(n - 1, max(before, default=-1)) is not None)

    def absence(self):
        """Of the last alert: whether no window crossed, from the wait before it to its end."""
        if not self.alerts:
            return False
        since, _, end = self.alerts[-1]
        return self.for_want_of_rows(since, len(self.verdicts) if end is None else end)

    def peak(self):
        if not self.alerts:
            return None
        _, start, end = self.alerts[-1]
        shares = {"breach": 0.3, "worse": 0.6, "between": 0.15, "clear": 0.05}
        return max((shares[v] for v in self.verdicts[start:end] if v in shares), default=None)


@settings(many, max_examples=200)
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
            _, start, end = told.alerts[-1]
            assert memory.started_at == times[start] * MINUTE
            assert memory.ended_at == (None if end is None else times[end] * MINUTE)
            assert memory.peak == told.peak()
            if memory.fires:
                assert memory.absence is told.absence()
        else:
            assert (memory.started_at, memory.ended_at, memory.peak) == (None, None, None)
