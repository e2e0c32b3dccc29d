"""A server of TIDEGATE_BINARY, which by default receives telemetry, for the test programs beside this one."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import requests

BINARY = os.environ["TIDEGATE_BINARY"]
CONFIGURATION = """
databases: [{name: telemetry, ingest: ./telemetry}]
receivers: {otlp: telemetry, prometheus: telemetry, bulk: telemetry}
auth: {keys: keys.json}
roles:
  - {name: sender, ingest: ["telemetry.*"]}
  - {name: reader, databases: [telemetry], toolsets: ["*"]}
  - {name: other, ingest: ["telemetry.other"]}
"""
# Nothing takes so long.
SECONDS_MAX = 60


class Node:
    def __init__(self, folder: Path, configuration=CONFIGURATION, roles=("sender", "reader", "other")):
        self.folder = folder
        (folder / "tidegate.yaml").write_text(configuration)
        self.keys = {role: self.add_key(role) for role in roles}
        self.process = None
        self.start("127.0.0.1:0")

    def start(self, listen: str):
        command = [BINARY, "serve", "--config", str(self.folder / "tidegate.yaml"), "--listen", listen]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        log = []
        for line in self.process.stderr:
            log.append(line)
            if found := re.search(r"listening on (http://(\S+))/mcp", line):
                self.url, self.address = found.groups()
                break
        else:
            sys.exit("the server did not start:\n" + "".join(log))
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def add_key(self, role: str) -> str:
        command = [BINARY, "key", "add", role, "--role", role, "--file", str(self.folder / "keys.json")]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]

    def post(self, path: str, body: bytes, role="sender", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Authorization", f"Bearer {self.keys[role]}")
        return requests.post(self.url + path, data=body, headers=headers, timeout=SECONDS_MAX)

    def call(self, tool: str, **arguments) -> dict:
        """A call over MCP; its text, and its structured content if it has any."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": tool,
                "arguments": arguments,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        }
        headers = {
            "Authorization": f"Bearer {self.keys['reader']}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        response = requests.post(self.url + "/mcp", json=message, headers=headers, timeout=SECONDS_MAX)
        text = response.text
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        answer = json.loads(text)
        assert "result" in answer, answer
        result = answer["result"]
        assert not result.get("isError"), result
        return {"text": "".join(part.get("text", "") for part in result["content"]), "structured": result.get("structuredContent")}

    def json(self, tool: str, **arguments) -> dict:
        return json.loads(self.call(tool, **arguments)["text"])

    def sql(self, sql: str, **options) -> list:
        """Rows of a statement over REST."""
        headers = {"Authorization": f"Bearer {self.keys['reader']}", "Accept": "application/x-ndjson"}
        response = requests.post(self.url + "/rest/sql", json={"sql": sql, **options}, headers=headers, timeout=SECONDS_MAX)
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.text.splitlines()]


def wait_until(condition, what: str):
    """Waits for another program; a bound for a program that hangs, and no measurement."""
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"it did not happen: {what}")
