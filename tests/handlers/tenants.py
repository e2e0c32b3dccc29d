"""Two tenants under row-level security without FORCE, and a hundred callers at once: each sees its own rows and no others.

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

from bridged import HERE, Database, Node, served, until
from caller import Caller
from lines import failure_of, result_of
from report import Report

CALLERS_PER_TENANT = 50
ROUNDS = 5
CONNECTIONS = 10
# How many rows each has from the beginning.
GIVEN = {"north": 7, "south": 11}


@dataclass
class Person:
    """Somebody of a tenant, and what must be true for it at any moment."""

    name: str
    tenant: str
    caller: Caller
    legacy: bool
    is_asleep: Callable[[], bool] | None
    added: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def check(self, said: dict) -> None:
        wanted = {"user": self.name, "tenant": self.tenant, "role": "mcp_staff", "tenants": [self.tenant]}
        wanted |= {"given": GIVEN[self.tenant], "own": self.added}
        found = {name: said.get(name) for name in wanted}
        assert found == wanted, f"{found} instead of {wanted}"

    # ---- What it does, each under the name by which it is counted ----

    def see(self) -> None:
        self.check(result_of(self.caller.call("see"))["structuredContent"])

    def see_rows(self) -> None:
        rows = json.loads(result_of(self.caller.call("see_rows"))["content"][0]["text"])
        owners = Counter(row["owner"] for row in rows)
        assert {row["tenant"] for row in rows} == {self.tenant}, rows
        assert (owners["nobody"], owners[self.name]) == (GIVEN[self.tenant], self.added), owners

    def add(self) -> None:
        said = result_of(self.caller.call("add", {"text": "mine"}))["structuredContent"]
        self.added += 1
        self.check(said)

    def read(self) -> None:
        contents = result_of(self.caller.read(f"notes:///seen/{self.name}"))["contents"]
        said = json.loads(contents[0]["text"])
        assert said["by"] == self.name, said
        self.check(said)

    def get(self) -> None:
        messages = result_of(self.caller.get("seen"))["messages"]
        self.check(json.loads(messages[0]["content"]["text"]))

    def fail(self) -> None:
        said = failure_of(self.caller.call("add_and_fail"))
        assert "CANARY" not in said and "north" not in said and "south" not in said, said

    def say_no(self) -> None:
        assert failure_of(self.caller.call("add_and_say_no")) == f"no, {self.name}"

    def trespass(self) -> None:
        other = next(tenant for tenant in GIVEN if tenant != self.tenant)
        said = failure_of(self.caller.call("trespass", {"tenant": other}))
        assert "CANARY" not in said and "policy" not in said, said

    def cancel(self) -> None:
        # The handler never ends by itself, so whatever becomes of the call, nothing of it may stay.
        self.caller.send_only("tools/call", {"name": "add_and_sleep", "arguments": {}}, "given up")
        if self.is_asleep:
            # Most leave before their call has begun; of these it is certain.
            until(self.is_asleep, "a call that will be cancelled has begun")
        self.caller.close()

    def run(self, numbers: random.Random, start: threading.Barrier) -> None:
        deeds = [self.see, self.see_rows, self.add, self.read, self.get, self.fail, self.say_no, self.trespass]
        # A legacy client says that it cancels on another connection; leaving means nothing there.
        deeds += [] if self.legacy else [self.cancel]
        start.wait()
        for _ in range(ROUNDS):
            for deed in numbers.sample(deeds, len(deeds)):
                try:
                    deed()
                except Exception as error:
                    self.problems.append(f"{self.name} of {self.tenant}, {deed.__name__}: {type(error).__name__}: {error}")
                self.calls[deed.__name__] += 1


def people_of(node: Node, database: Database) -> list[Person]:
    def is_asleep() -> bool:
        return database.ask("SELECT is_called FROM asleep") == "t"

    people = []
    for tenant in GIVEN:
        for number in range(CALLERS_PER_TENANT):
            name, legacy = f"{tenant[0]}{number}", number % 5 == 0
            revision = Caller.LEGACY if legacy else Caller.MODERN
            # Past the proxy: a hundred at once would wait for it.
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
    with report.check(f"{len(people)} callers at once: every answer holds the caller's own alone"):
        problems = [problem for person in people for problem in person.problems]
        assert not problems, f"{len(problems)} problems, the first ones: {problems[:3]}"
    with report.check("every caller did everything"):
        calls = sum((person.calls for person in people), Counter())
        modern = sum(not person.legacy for person in people)
        wanted = {name: len(people) * ROUNDS for name in calls} | {"cancel": modern * ROUNDS}
        assert dict(calls) == wanted and len(calls) == 9, calls
    with report.check("what was cancelled runs no more"):
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        until(lambda: database.ask(sleeping) == "0", "no handler sleeps")
    with report.check("each added row is there once, and nothing of what failed or was cancelled"):
        each = "SELECT owner || '@' || tenant, count(*) FROM note GROUP BY 1"
        counted = database.ask(f"SELECT jsonb_object_agg(name, n) FROM ({each}) AS each (name, n)")
        wanted = {f"{person.name}@{person.tenant}": ROUNDS for person in people}
        wanted |= {f"nobody@{tenant}": given for tenant, given in GIVEN.items()}
        assert json.loads(counted) == wanted, counted
        assert database.ask("SELECT count(*) FROM note WHERE text = 'CANARY'") == "0"
    with report.check("both tenants were served by the same connections"):
        backends = int(database.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'mcp_node'"))
        # One more listens.
        assert backends <= CONNECTIONS + 1, backends


def check_others(node: Node, report: Report) -> None:
    with report.check("afterwards nobody in particular sees no rows, and is nobody"):
        for caller in (node.caller(), node.caller(revision=Caller.LEGACY)):
            said = result_of(caller.call("see"))["structuredContent"]
            assert (said["user"], said["tenant"], said["tenants"]) == ("", "", []), said
            assert (said["role"], said["given"], said["own"]) == ("mcp_public", 0, 0), said
    with report.check("nor does somebody without a tenant"):
        said = result_of(node.caller("eve@").call("see"))["structuredContent"]
        assert (said["user"], said["tenant"], said["tenants"], said["given"]) == ("eve", "", [], 0), said


def main() -> int:
    report = Report()
    report.subject = "tenants"
    database = Database("tenants")
    database.run_file(HERE / "tenants.sql")
    with served(database, connections=CONNECTIONS) as node:
        people = people_of(node, database)
        run_all(people)
        check_all(database, people, report)
        check_others(node, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
