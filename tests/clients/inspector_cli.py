"""The inspector's command line against the real binary, over its three transports and in both eras, with one process for each question.

Runs under `with_server.py`; TIDEGATE_NODE and TIDEGATE_NODE_PACKAGES are the paths of Node.js and the packages.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from endpoints import address, recorded_command
from questions import QUESTIONS, compare
from report import Report

INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
# A process takes a second, most of it for its start. HTTP+SSE belongs to the legacy era, so it runs only in that era.
ERAS = {"stdio": ("legacy", "modern"), "http": ("legacy", "modern"), "sse": ("legacy",)}
# Each question takes about a second; these cover every kind of answer once.
SELECTED_QUESTIONS = (
    "databases are listed",
    "query filters, groups and orders",
    "sql binds parameters",
    "format markdown",
    "an answer over its budget ends with a line that says so",
    "the largest answer that is given arrives whole",
    "an unknown table gets the nearest name",
)
WAIT_SECONDS_MAX = 60


def target(transport: str) -> list[str]:
    if transport == "stdio":
        return recorded_command(transport)
    return ["--server-url", address(transport), "--transport", transport]


class Inspector:
    def __init__(self, transport: str, era: str, home: str):
        self._target = target(transport)
        self._era = era
        # The inspector stores a catalog of servers in the home folder, which must not be the user's.
        self._environment = {**os.environ, "HOME": home}

    def request(self, method: str, *arguments: str) -> dict[str, Any]:
        packages = Path(os.environ["TIDEGATE_NODE_PACKAGES"])
        command = [os.environ["TIDEGATE_NODE"], str(packages / INSPECTOR), "--cli", *self._target]
        command += ["--protocol-era", self._era, "--format", "json", "--quiet", "--method", method, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, env=self._environment
        )
        assert done.stdout.strip(), f"exit code {done.returncode}: {done.stderr[-1500:]}"
        # A tool error changes the exit code too, so only the answer is checked.
        answer = json.loads(done.stdout)
        return answer.get("result", answer)


def check_lists(inspector: Inspector, report: Report) -> None:
    with report.check("tools/list"):
        names = {tool["name"] for tool in inspector.request("tools/list")["tools"]}
        assert {question["tool"] for question in QUESTIONS} <= names, names
    with report.check("resources/list and resources/read"):
        resources = inspector.request("resources/list")["resources"]
        uri = next(resource["uri"] for resource in resources if "orders" in resource["uri"])
        assert inspector.request("resources/read", "--uri", uri)["contents"]
    with report.check("resources/templates/list"):
        templates = inspector.request("resources/templates/list")["resourceTemplates"]
        assert any("{table}" in template["uriTemplate"] for template in templates), templates


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="tidegate-inspector-") as home:
        for transport, eras in ERAS.items():
            for era in eras:
                report.subject = f"inspector {transport} {era}"
                inspector = Inspector(transport, era, home)
                check_lists(inspector, report)
                for question in QUESTIONS:
                    if question["name"] not in SELECTED_QUESTIONS:
                        continue
                    with report.check(question["name"]):
                        arguments = ("--tool-name", question["tool"], "--tool-args-json", json.dumps(question["arguments"]))
                        result = inspector.request("tools/call", *arguments)
                        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
                        compare(question, texts, result.get("isError", False))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
