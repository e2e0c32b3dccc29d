"""A server of one folder of fixtures, for the two programs beside this one."""

import http.client
import json
import re
import subprocess
import threading
from pathlib import Path

CONFIGURATION = "tidegate.yaml"
# What a folder has to contain, written by `write`.
EXPECTED = "expected.json"
# Nothing takes so long.
SECONDS_MAX = 120


def run(binary: Path, folder: Path, *arguments: str) -> str:
    """The standard output of a command that runs in the folder."""
    command = [binary, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, f"{' '.join(arguments)} failed with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Node:
    """Serves the folder until `stop` or `kill`."""

    def __init__(self, binary: Path, folder: Path, key: str):
        self._key = key
        command = [binary, "serve", "--config", folder / CONFIGURATION, "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        for line in self._process.stderr:
            self.log.append(line)
            if found := re.search(r"listening on http://(\S+)/mcp", line):
                self._address = found[1]
                break
        else:
            raise AssertionError("the server did not start:\n" + "".join(self.log))
        threading.Thread(target=lambda: self.log.extend(self._process.stderr), daemon=True).start()

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(SECONDS_MAX) == 0, f"the server ended with {self._process.returncode}"

    def kill(self) -> None:
        """Ends the server as a power loss does: rows that wait in the log stay there."""
        self._process.kill()
        self._process.wait(SECONDS_MAX)

    def request(self, method: str, path: str, body: object = None, accept: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", "Accept": accept}
        connection = http.client.HTTPConnection(self._address, timeout=SECONDS_MAX)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        assert response.status in (200, 201), f"{method} {path}: {response.status} {answer[:2000]!r}"
        return answer

    def rows(self, sql: str, database: str) -> list[dict]:
        answer = self.request("POST", "/rest/sql", {"sql": sql, "database": database}, "application/x-ndjson")
        return [json.loads(line) for line in answer.splitlines()]

    def call(self, tool: str, arguments: dict) -> dict:
        return json.loads(self.request("POST", f"/rest/tools/{tool}/call", arguments))
