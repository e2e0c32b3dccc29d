"""Measures the largest answer that each client accepts over each transport, for the table in docs/reference/client-limits.md.

    largest_answer.py            prints the table
    largest_answer.py --write    writes it into the page

Each pair of client and transport requests answers in a binary search of sizes, from a server without a limit. Run it
manually when a pinned client changes: `scripts/test clients` installs what it needs. TIDEGATE_BINARY names the binary,
TIDEGATE_PYTHON and TIDEGATE_PYTHON1 the environments with PyPI's `mcp` 2.x and 1.x, TIDEGATE_NODE and TIDEGATE_NODE_PACKAGES
Node.js and the packages.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data_folder
from with_server import run_server

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "reference" / "client-limits.md"
MARKS = ("<!-- measured -->\n", "<!-- end of what was measured -->\n")
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

# The upper end of the search; a model reads a hundredth of it.
SIZE_MAX = 16 * 1024 * 1024
ROW_BYTES = 1024
ATTEMPT_SECONDS_MAX = 60
ERROR_CHARACTERS_MAX = 200
UNBOUNDED = ["--inline-bytes", "unlimited", "--log", "error"]

TRANSPORTS = {
    "stdio": "stdio",
    "http": "Streamable HTTP, as JSON",
    "events": "Streamable HTTP, as events",
    "sse": "HTTP+SSE",
    "ws": "WebSocket",
}


@dataclass(frozen=True)
class Client:
    title: str
    transports: tuple[str, ...]
    # The command before the transport and its target; empty for the inspector, which has its own command line.
    command: tuple[str, ...] = ()


def clients() -> list[Client]:
    node, python, python1 = (os.environ[name] for name in ("TIDEGATE_NODE", "TIDEGATE_PYTHON", "TIDEGATE_PYTHON1"))
    probe, node_probe = str(HERE / "largest_probe.py"), str(HERE / "largest_probe.mjs")
    most = ("stdio", "http", "events", "sse")
    return [
        Client("PyPI `mcp` 1.30", (*most, "ws"), (python1, probe)),
        Client("PyPI `mcp` 2.3", most, (python, probe)),
        Client("npm `@modelcontextprotocol/sdk` 1.32", (*most, "ws"), (node, node_probe, "sdk")),
        Client("npm `@modelcontextprotocol/client` 2.4", most, (node, node_probe, "client")),
        Client("inspector 2.12", ("stdio", "http", "sse")),
    ]


def question(size: int) -> dict[str, Any]:
    """A call whose answer is one text of `size` bytes: lines of 1 KiB, and one line with the rest."""
    header, line_end = len("t\r\n"), len("\r\n")
    rows = max(0, (size - header - line_end) // ROW_BYTES)
    rest = size - header - line_end - rows * ROW_BYTES
    statement = (
        f"SELECT repeat('x', {ROW_BYTES - line_end}) AS t FROM generate_series(1, {rows}) "
        f"UNION ALL SELECT repeat('x', {rest})"
    )
    return {"name": "sql", "arguments": {"database": "shop", "sql": statement, "max_rows": rows + 1, "format": "csv"}}


class Probe:
    """A process that sends requests; it is restarted when it does not answer in time."""

    def __init__(self, command: list[str]):
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def request(self, size: int) -> str:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        process = self._process
        assert process.stdin and process.stdout
        watchdog = threading.Timer(ATTEMPT_SECONDS_MAX, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"question": question(size), "size": size}) + "\n")
            process.stdin.flush()
            outcome = process.stdout.readline().strip()
        finally:
            watchdog.cancel()
        if not outcome:
            self.close()
            return "no answer and no error"
        if outcome.startswith("answer of "):
            raise SystemExit(f"instead of {size} bytes the server returned an {outcome}")
        return outcome

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class Inspector:
    """The inspector's command line, with one process for each answer."""

    def __init__(self, transport: str, target: list[str], home: str):
        node, packages = os.environ["TIDEGATE_NODE"], Path(os.environ["TIDEGATE_NODE_PACKAGES"])
        server = target if transport == "stdio" else ["--server-url", target[0], "--transport", transport]
        self._command = [node, str(packages / INSPECTOR), "--cli", *server, "--format", "json", "--quiet"]
        self._environment = {**os.environ, "HOME": home}

    def request(self, size: int) -> str:
        call = question(size)
        arguments = ["--method", "tools/call", "--tool-name", call["name"]]
        arguments += ["--tool-args-json", json.dumps(call["arguments"])]
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                capture_output=True,
                text=True,
                timeout=ATTEMPT_SECONDS_MAX,
                env=self._environment,
            )
            answer = json.loads(done.stdout)
            text = answer.get("result", answer)["content"][0]["text"]
        except subprocess.TimeoutExpired:
            return "no answer and no error"
        except (ValueError, LookupError):
            return " ".join(done.stderr.split())[:400] or done.stdout[:200]
        if len(text) != size:
            raise SystemExit(f"instead of {size} bytes the server returned an answer of {len(text)}: {text[:200]}")
        return "whole"

    def close(self) -> None:
        """Does nothing: each process has already ended."""


def largest(probe: Probe | Inspector) -> tuple[int, str]:
    """The largest size that arrives whole, and the error of the next one; SIZE_MAX and no error when that arrives."""
    if (outcome := probe.request(SIZE_MAX)) == "whole":
        return SIZE_MAX, ""
    taken, refused = 0, SIZE_MAX
    # The search starts with small sizes, so that most attempts are cheap.
    size = 64 * 1024
    while refused - taken > 1:
        if (attempt := probe.request(size)) == "whole":
            taken = size
        else:
            refused, outcome = size, attempt
        size = min(size * 2, (taken + refused) // 2)
    return taken, outcome


def row(client: Client, transports: list[str], taken: int, outcome: str) -> str:
    names = [TRANSPORTS[transport] for transport in transports]
    if not client.command:
        # The inspector decides whether it requests progress, and thereby events.
        names = [name.removesuffix(", as JSON") for name in names]
    size_text = f"{taken:,} bytes" if taken < SIZE_MAX else "16 MiB and more"
    # The place in the probe does not help a reader.
    error_text = re.sub(r" \(\w+\.\w+:\d+\)|[|`]", "", outcome)[:ERROR_CHARACTERS_MAX]
    return f"| {client.title} | {'; '.join(names)} | {size_text} | {f'`{error_text}`' if error_text else ''} |\n"


def measure(shop: str, home: str) -> list[str]:
    """The lines of the table."""
    binary = os.environ["TIDEGATE_BINARY"]
    lines = ["| client | transport | largest answer | beyond it |\n", "|---|---|---|---|\n"]
    with run_server([binary, "serve", shop, "--listen", "127.0.0.1:0", *UNBOUNDED]) as url:
        targets = {
            "stdio": [binary, "stdio", shop, *UNBOUNDED],
            "http": [url],
            "events": [url],
            "sse": [f"{url}/sse"],
            "ws": [f"ws{url.removeprefix('http')}/ws"],
        }
        for client in clients():
            without_limit = []
            for transport in client.transports:
                target = targets[transport]
                probe = (
                    Probe([*client.command, transport, *target]) if client.command else Inspector(transport, target, home)
                )
                taken, outcome = largest(probe)
                probe.close()
                print(row(client, [transport], taken, outcome), end="", file=sys.stderr, flush=True)
                if taken < SIZE_MAX:
                    lines.append(row(client, [transport], taken, outcome))
                else:
                    without_limit.append(transport)
            if without_limit:
                lines.append(row(client, without_limit, SIZE_MAX, ""))
    return lines


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-largest-") as temporary:
        shop = data_folder.write(Path(temporary))
        table = "".join(measure(str(shop), temporary))
    if sys.argv[1:] != ["--write"]:
        print(table, end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    begin, end = MARKS
    PAGE.write_text(re.sub(f"(?s){begin}.*{end}", lambda _: f"{begin}\n{table}\n{end}", page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
