"""A network whose nodes are killed, stopped, cut off and slowed down while they answer.

Each answer is the right one, or has a mark that names the nodes that it lacks, or is an error; none comes after its deadline; and nothing
is left behind: no call, connection, open file, memory or temporary folder. TIDEGATE_BINARY names the program, which has the feature `network`.

    disturbed_nodes.py [--times N] [--seed NUMBER]
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.parquet
from disturbance import Cable

BINARY = os.environ["TIDEGATE_BINARY"]
NODES = ("cork", "oslo", "rome")
ROWS, SITES = 150_000, 7
# A node that is back is used within this time.
RETURN_SECONDS = 60
# The time limit of a client, longer than that of any call.
REQUEST_SECONDS_MAX = 600
# Connections to one node at the end: the two networks have connections of their own.
CONNECTIONS_MAX = 4
# What a server may hold more than before the disturbances. Connections are open files at both ends.
OPEN_FILES_GROWTH_MAX = CONNECTIONS_MAX * len(NODES)
MEMORY_GROWTH_MAX_BYTES = 64 << 20
GROUPS = "SELECT site, count(*) AS n, sum(id) AS total FROM readings GROUP BY site ORDER BY site"
# The rows of one side travel.
JOIN = (
    "SELECT a.site, count(*) AS n, sum(b.id) AS total FROM readings AS a JOIN readings AS b ON a.id = b.id - 1 "
    "GROUP BY a.site ORDER BY a.site"
)
ALL_ROWS = "SELECT id, site, note FROM readings"


def rows_of(nodes: set[str]) -> list[tuple[int, str]]:
    """The identifiers and sites of the rows on `nodes`; neighbours are on different nodes."""
    return [(number, f"site {number % SITES}") for number in range(ROWS * len(NODES)) if NODES[number % len(NODES)] in nodes]


class Expected:
    """The right answers of each set of nodes, without the program."""

    def __init__(self):
        self._known: dict[tuple[str, frozenset[str]], object] = {}

    def answer(self, question: str, nodes: set[str]):
        key = question, frozenset(nodes)
        if key not in self._known:
            self._known[key] = self._compute(question, nodes)
        return self._known[key]

    def _compute(self, question: str, nodes: set[str]):
        rows = rows_of(nodes)
        if question == ALL_ROWS:
            return len(rows), sum(number for number, _ in rows)
        if question == JOIN:
            sites = dict(rows)
            pairs = [(sites[number - 1], number) for number, _ in rows if number - 1 in sites]
        else:
            pairs = [(site, number) for number, site in rows]
        groups: dict[str, list[int]] = {}
        for site, number in pairs:
            groups.setdefault(site, []).append(number)
        return [(site, len(groups[site]), sum(groups[site])) for site in sorted(groups)]


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds. The configuration has those for the first rows of a node and for a call."""

    first_rows: float
    call: float
    # How long after its deadline an answer may end.
    grace: float

    @classmethod
    def for_answers_of(cls, seconds: float) -> "Limits":
        """Limits that undisturbed answers, which take `seconds`, do not reach on this machine."""
        return cls(first_rows=max(3, 5 * seconds), call=max(8, 8 * seconds), grace=max(6, 5 * seconds))


# For answers whose duration is measured.
GENEROUS = Limits(first_rows=120, call=240, grace=0)


class Server:
    """A process of the program in `folder`; its `url` and its `flight_port` are those that it prints."""

    def __init__(self, folder: Path, configuration: dict):
        folder.mkdir(parents=True, exist_ok=True)
        # JSON is YAML.
        (folder / "tidegate.yaml").write_text(json.dumps(configuration))
        self.folder, self._has_flight = folder, "flight" in configuration["server"]
        # Of this server only, so that what it leaves there is its own.
        self._folders = {"TMPDIR": str(folder / "temporary"), "XDG_CACHE_HOME": str(folder / "cache")}
        for path in self._folders.values():
            Path(path).mkdir()
        self.start()

    def start(self):
        command = [BINARY, "serve", "--log", "error"]
        self.process = subprocess.Popen(
            command, cwd=self.folder, env=os.environ | self._folders, stderr=subprocess.PIPE, text=True
        )
        self.url = self.flight_port = None
        printed = []
        for line in self.process.stderr:
            printed.append(line)
            if found := re.match(r"listening on grpc\S*:(\d+)$", line):
                self.flight_port = int(found[1])
            elif found := re.match(r"listening on (http\S+)/mcp$", line):
                self.url = found[1]
            if self.url and (self.flight_port or not self._has_flight):
                break
        else:
            sys.exit(f"the server in {self.folder} did not start:\n{''.join(printed)}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def gauge(self, name: str) -> int:
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as response:
            found = re.search(rf"^{name} (\S+)$", response.read().decode(), re.MULTILINE)
        return int(float(found[1]))

    def usage(self) -> "Usage":
        process = Path(f"/proc/{self.process.pid}")
        memory = re.search(r"^RssAnon:\s+(\d+) kB$", (process / "status").read_text(), re.MULTILINE)
        temporary = [path for folder in self._folders.values() for path in Path(folder).rglob("*")]
        return Usage(len(os.listdir(process / "fd")), int(memory[1]) << 10, len(temporary))

    def request(self, database: str, sql: str) -> urllib.request.Request:
        body = json.dumps({"database": database, "sql": sql, "no_cache": True, "max_rows": ROWS * len(NODES)}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        return urllib.request.Request(self.url + "/rest/sql", body, headers)


@dataclass(frozen=True)
class Usage:
    """What a server holds: open files, anonymous memory, and files and folders in its temporary folders."""

    open_files: int
    memory_bytes: int
    temporary_files: int

    def exceeds(self, before: "Usage") -> bool:
        return (
            self.open_files > before.open_files + OPEN_FILES_GROWTH_MAX
            or self.memory_bytes > before.memory_bytes + MEMORY_GROWTH_MAX_BYTES
            or self.temporary_files > before.temporary_files
        )

    def __str__(self):
        return f"{self.open_files} open files, {self.memory_bytes / (1 << 20):.0f} MiB, {self.temporary_files} temporary files"


class Answer:
    """What a client sees of a call: rows and the nodes they lack, or an error."""

    def __init__(self, server: Server, database: str, question: str):
        self.rows, self.missing, self.error = [], set(), None
        self.question = question
        started = time.monotonic()
        try:
            with urllib.request.urlopen(server.request(database, question), timeout=REQUEST_SECONDS_MAX) as response:
                self.missing = set(filter(None, response.headers.get("Tidegate-Partial", "").split(", ")))
                self._read(response)
        except urllib.error.HTTPError as error:
            self.error = error.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.error = self.error or f"broken: {error}"
        self.seconds = time.monotonic() - started

    def _read(self, response):
        numbers = [0, 0]
        # Reading line by line would take a broken connection for the end.
        try:
            body = response.read()
        except http.client.IncompleteRead as broken:
            self.error = "broken: " + broken.partial[-1000:].decode().rstrip().rpartition("\n")[2]
            return
        for line in body.splitlines():
            row = json.loads(line)
            if "error" in row:
                self.error = json.dumps(row["error"])
            elif self.question == ALL_ROWS:
                numbers = [numbers[0] + 1, numbers[1] + row["id"]]
            else:
                self.rows.append((row["site"], row["n"], row["total"]))
        if self.question == ALL_ROWS:
            self.rows = tuple(numbers)


class Network:
    """Three nodes behind cables, and a server with two databases over them: one answers partially, the other does not."""

    def __init__(self, folder: Path, running: ExitStack):
        self.nodes, self.cables, listed = {}, {}, []
        for name in NODES:
            data = folder / name / "data"
            data.mkdir(parents=True)
            write_rows(data / "readings.parquet", rows_of({name}))
            node = Server(folder / name, {
                "server": {"listen": "127.0.0.1:0", "flight": "127.0.0.1:0"},
                "databases": [{"name": "plant", "files": "./data"}],
            })  # fmt: skip
            running.callback(node.end)
            cable = running.enter_context(Cable(node.flight_port))
            self.nodes[name], self.cables[name] = node, cable
            listed.append({"name": name, "url": f"grpc://127.0.0.1:{cable.port}", "database": "plant"})
        self._folder, self._running, self._listed = folder, running, listed
        self.start_asker("measuring", GENEROUS)

    def start_asker(self, name: str, limits: Limits):
        """Starts the server with the two databases in a folder of this name."""
        networks = [
            {"name": partial, "network": {"nodes": self._listed, "partial": partial, "timeout": milliseconds(limits.first_rows)}}
            for partial in ("allow", "forbid")
        ]
        self.limits = limits
        self.asker = Server(self._folder / name, {
            "server": {"listen": "127.0.0.1:0"}, "databases": networks, "limits": {"timeout": milliseconds(limits.call)},
        })  # fmt: skip
        self._running.callback(self.asker.end)

    @property
    def servers(self) -> dict[str, Server]:
        return {"asker": self.asker, **self.nodes}

    def usage(self) -> dict[str, Usage]:
        return {name: server.usage() for name, server in self.servers.items()}

    def disturb(self, how: str, name: str):
        node, cable = self.nodes[name], self.cables[name]
        match how:
            case "kill":
                node.process.kill()
            case "stop":
                node.process.send_signal(signal.SIGSTOP)
            case "cut":
                cable.cut()
            case "slow":
                cable.slow_down(0.2)
            case "swallow":
                cable.swallow()

    def mend(self, how: str, name: str):
        node, cable = self.nodes[name], self.cables[name]
        match how:
            case "kill":
                node.process.wait()
                node.start()
                cable.target = node.flight_port
            case "stop":
                node.process.send_signal(signal.SIGCONT)
            case _:
                cable.mend()


def write_rows(file: Path, rows: list[tuple[int, str]]):
    columns = {
        "id": pyarrow.array([number for number, _ in rows], pyarrow.int64()),
        "site": pyarrow.array([site for _, site in rows]),
        "note": pyarrow.array([f"a note of the reading with the number {number}" for number, _ in rows]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), file, row_group_size=20_000)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"


def check(answer: Answer, limits: Limits, database: str, disturbed: str, expected: Expected) -> str:
    """What the answer is; ends the program if it is wrong."""
    problem = None
    if answer.seconds > limits.call + limits.grace:
        problem = f"it took {answer.seconds:.1f} s"
    elif answer.error:
        # While a node is slow, the time limit of the call ends it: a connection is then broken without a reason.
        if disturbed not in answer.error and answer.seconds < limits.call:
            problem = f"the error does not name the node: {answer.error}"
    elif answer.missing - {disturbed} or (answer.missing and database == "forbid"):
        problem = f"it lacks {answer.missing}"
    elif answer.rows != expected.answer(answer.question, set(NODES) - answer.missing):
        problem = f"its rows are wrong, without {answer.missing or 'any mark'}: {answer.rows}"
    if problem:
        sys.exit(f"a wrong answer of {database} to {answer.question} while {disturbed} was disturbed: {problem}")
    return "error" if answer.error else "partial" if answer.missing else "whole"


def answer_undisturbed(network: Network, expected: Expected) -> dict[str, float]:
    """The seconds of each question. All of them are answered, so that the servers hold what they keep for the next call."""
    seconds: dict[str, float] = {}
    for database in ("allow", "forbid"):
        for question in (GROUPS, JOIN, ALL_ROWS):
            answer = Answer(network.asker, database, question)
            seconds[question] = answer.seconds
            if answer.error or answer.missing or answer.rows != expected.answer(question, set(NODES)):
                sys.exit(f"wrong without a disturbance: {question}: {answer.error} {answer.rows}")
    return seconds


def run(network: Network, seconds: dict[str, float], expected: Expected, times: int, choice: random.Random) -> Counter:
    outcomes = Counter()
    for number in range(times):
        how = choice.choice(["kill", "stop", "cut", "slow", "swallow"])
        name, database = choice.choice(NODES), choice.choice(["allow", "forbid"])
        question = choice.choice([GROUPS, JOIN, ALL_ROWS, ALL_ROWS])
        # From before the call to after its end.
        delay = choice.uniform(-0.1, 1.1) * seconds[question]
        timer = threading.Timer(max(delay, 0), network.disturb, (how, name))
        timer.start()
        if delay < 0:
            timer.join()
        answer = Answer(network.asker, database, question)
        timer.join()
        outcome = check(answer, network.limits, database, name, expected)
        outcomes[f"{how}: {outcome}"] += 1
        print(f"{number + 1}: {how} {name} after {delay:.2f} s, {database}: {outcome} in {answer.seconds:.2f} s", flush=True)
        network.mend(how, name)
        wait_until_whole(network, expected, f"{name} is back")
    return outcomes


def wait_until_whole(network: Network, expected: Expected, what: str):
    end = time.monotonic() + RETURN_SECONDS
    while True:
        answer = Answer(network.asker, "allow", GROUPS)
        if not answer.error and not answer.missing:
            if answer.rows != expected.answer(GROUPS, set(NODES)):
                sys.exit(f"wrong rows after {what}: {answer.rows}")
            return
        if time.monotonic() > end:
            sys.exit(f"{RETURN_SECONDS} s after {what}, answers still lack it: {answer.error or answer.missing}")
        time.sleep(0.1)


def check_nothing_is_left(network: Network, before: dict[str, Usage]):
    """No call is open on any server, the asker holds no more connections than one for each node and form of identity, and no
    server holds more open files, memory or temporary files than `before`.
    """
    end = time.monotonic() + network.limits.call + network.limits.grace
    while problem := find_remains(network, before):
        if time.monotonic() > end:
            sys.exit(problem)
        time.sleep(0.1)
    connections = {name: cable.connections for name, cable in network.cables.items()}
    print(f"nothing is left: no open call; connections: {connections}")
    for name, usage in network.usage().items():
        print(f"{name}: {usage}; before: {before[name]}")


def find_remains(network: Network, before: dict[str, Usage]) -> str | None:
    """What is still left, if anything is."""
    if calls := {name: calls for name, server in network.servers.items() if (calls := server.gauge("tidegate_jobs_open"))}:
        return f"calls are still open: {calls}"
    connections = {name: cable.connections for name, cable in network.cables.items()}
    if any(count > CONNECTIONS_MAX for count in connections.values()):
        return f"connections are left: {connections}"
    for name, usage in network.usage().items():
        if usage.exceeds(before[name]):
            return f"{name} holds more than before: {usage}; before: {before[name]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        network = Network(Path(folder), running)
        expected = Expected()
        measured = max(answer_undisturbed(network, expected).values())
        network.asker.end()
        network.start_asker("asker", Limits.for_answers_of(measured))
        print(f"an answer takes up to {measured:.2f} s, so the limits are {network.limits}", flush=True)
        seconds = answer_undisturbed(network, expected)
        before = network.usage()
        outcomes = run(network, seconds, expected, options.times, random.Random(options.seed))
        check_nothing_is_left(network, before)
    print(", ".join(f"{what} {count}" for what, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
