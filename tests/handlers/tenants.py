"""Two tenants under row-level security without FORCE, and a hundred callers at once: each receives only its own rows.

    scripts/postgres run -- python tenants.py

Among the calls are some that fail and some that are cancelled. The node has ten connections for all of them, so that each
connection serves both tenants in turn. TIDEGATE_BINARY names the binary.
"""

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bridged import HERE, Database, Node, run_node, wait_until
from caller import Caller
from lines import failure_of, result_of
from report import Report

CALLERS_PER_TENANT = 50
ROUNDS = 5
CONNECTIONS = 10
# The initial rows of each tenant.
GIVEN = {"north": 7, "south": 11}


@dataclass
class Person:
    """A user of a tenant, and the conditions that must always hold."""

    name: str
    tenant: str
    caller: Caller
    legacy: bool
    is_asleep: Callable[[], bool] | None
    added: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def check(self, answer: dict) -> None:
        expected = {"user": self.name, "tenant": self.tenant, "role": "mcp_staff", "tenants": [self.tenant]}
        expected |= {"given": GIVEN[self.tenant], "own": self.added}
        actual = {name: answer.get(name) for name in expected}
        assert actual == expected, f"{actual} instead of {expected}"

    # ---- Actions, counted by their names ----

    def see(self) -> None:
        self.check(result_of(self.caller.call("see"))["structuredContent"])

    def see_rows(self) -> None:
        rows = json.loads(result_of(self.caller.call("see_rows"))["content"][0]["text"])
        owners = Counter(row["owner"] for row in rows)
        assert {row["tenant"] for row in rows} == {self.tenant}, rows
        assert (owners["nobody"], owners[self.name]) == (GIVEN[self.tenant], self.added), owners

    def add(self) -> None:
        answer = result_of(self.caller.call("add", {"text": "mine"}))["structuredContent"]
        self.added += 1
        self.check(answer)

    def read(self) -> None:
        contents = result_of(self.caller.read(f"notes:///seen/{self.name}"))["contents"]
        answer = json.loads(contents[0]["text"])
        assert answer["by"] == self.name, answer
        self.check(answer)

    def get(self) -> None:
        messages = result_of(self.caller.get("seen"))["messages"]
        self.check(json.loads(messages[0]["content"]["text"]))

    def fail(self) -> None:
        answer = failure_of(self.caller.call("add_and_fail"))
        assert "CANARY" not in answer and "north" not in answer and "south" not in answer, answer

    def say_no(self) -> None:
        assert failure_of(self.caller.call("add_and_say_no")) == f"no, {self.name}"

    def trespass(self) -> None:
        other = next(tenant for tenant in GIVEN if tenant != self.tenant)
        answer = failure_of(self.caller.call("trespass", {"tenant": other}))
        assert "CANARY" not in answer and "policy" not in answer, answer

    def cancel(self) -> None:
        # The handler never ends by itself, so nothing of the call may remain.
        self.caller.send_only("tools/call", {"name": "add_and_sleep", "arguments": {}}, "given up")
        if self.is_asleep:
            # Most disconnect before their call has begun; this one waits for it.
            wait_until(self.is_asleep, "a call that will be cancelled has begun")
        self.caller.close()

    def run(self, numbers: random.Random, start: threading.Barrier) -> None:
        actions = [self.see, self.see_rows, self.add, self.read, self.get, self.fail, self.say_no, self.trespass]
        # A legacy client cancels over another connection; a disconnect has no effect.
        actions += [] if self.legacy else [self.cancel]
        start.wait()
        for _ in range(ROUNDS):
            for action in numbers.sample(actions, len(actions)):
                try:
                    action()
                except Exception as error:
                    self.problems.append(f"{self.name} of {self.tenant}, {action.__name__}: {type(error).__name__}: {error}")
                self.calls[action.__name__] += 1


def people_of(node: Node, database: Database) -> list[Person]:
    def is_asleep() -> bool:
        return database.query("SELECT is_called FROM asleep") == "t"

    people = []
    for tenant in GIVEN:
        for number in range(CALLERS_PER_TENANT):
            name, legacy = f"{tenant[0]}{number}", number % 5 == 0
            revision = Caller.LEGACY if legacy else Caller.MODERN
            # Without the proxy, which is too slow for a hundred at once.
            caller = node.caller(f"{name}@{tenant}", revision, direct=True)
            people.append(Person(name, tenant, caller, legacy, is_asleep if number == 1 else None))
    return people


def run_all(people: list[Person]) -> None:
    start = threading.Barrier(len(people))
    threads = [
        threading.Thread(target=person.run, args=(random.Random(seed), start)) for seed, person in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_all(database: Database, people: list[Person], report: Report) -> None:
    with report.check(f"{len(people)} callers at once: every answer contains only the caller's rows"):
        problems = [problem for person in people for problem in person.problems]
        assert not problems, f"{len(problems)} problems, the first ones: {problems[:3]}"
    with report.check("every caller did everything"):
        calls = sum((person.calls for person in people), Counter())
        modern = sum(not person.legacy for person in people)
        expected = {name: len(people) * ROUNDS for name in calls} | {"cancel": modern * ROUNDS}
        assert dict(calls) == expected and len(calls) == 9, calls
    with report.check("cancelled calls have ended"):
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        wait_until(lambda: database.query(sleeping) == "0", "no handler sleeps")
    with report.check("each added row exists once, and no row of a failed or cancelled call"):
        each = "SELECT owner || '@' || tenant, count(*) FROM note GROUP BY 1"
        counted = database.query(f"SELECT jsonb_object_agg(name, n) FROM ({each}) AS each (name, n)")
        expected = {f"{person.name}@{person.tenant}": ROUNDS for person in people}
        expected |= {f"nobody@{tenant}": given for tenant, given in GIVEN.items()}
        assert json.loads(counted) == expected, counted
        assert database.query("SELECT count(*) FROM note WHERE text = 'CANARY'") == "0"
    with report.check("both tenants were served by the same connections"):
        backends = int(database.query("SELECT count(*) FROM pg_stat_activity WHERE usename = 'mcp_node'"))
        # One more connection listens.
        assert backends <= CONNECTIONS + 1, backends


def check_others(node: Node, report: Report) -> None:
    with report.check("afterwards an anonymous caller receives no rows"):
        for caller in (node.caller(), node.caller(revision=Caller.LEGACY)):
            answer = result_of(caller.call("see"))["structuredContent"]
            assert (answer["user"], answer["tenant"], answer["tenants"]) == ("", "", []), answer
            assert (answer["role"], answer["given"], answer["own"]) == ("mcp_public", 0, 0), answer
    with report.check("nor does a user without a tenant"):
        answer = result_of(node.caller("eve@").call("see"))["structuredContent"]
        assert (answer["user"], answer["tenant"], answer["tenants"], answer["given"]) == ("eve", "", [], 0), answer


def main() -> int:
    report = Report()
    report.subject = "tenants"
    database = Database("tenants")
    database.run_file(HERE / "tenants.sql")
    with run_node(database, connections=CONNECTIONS) as node:
        people = people_of(node, database)
        run_all(people)
        check_all(database, people, report)
        check_others(node, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
