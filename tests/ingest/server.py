"""A server of TIDEGATE_BINARY with tables that take rows, for the test programs beside this one."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

BINARY = os.environ["TIDEGATE_BINARY"]
DATABASE = "plant"
# Nothing takes so long.
SECONDS_MAX = 120


class Server:
    """Runs as long as the block; its rows are in the folder `plant`."""

    def __init__(self, folder: Path, tables: dict):
        self.folder = folder
        # JSON is valid YAML.
        configuration = {"databases": [{"name": DATABASE, "ingest": f"./{DATABASE}", "tables": tables}]}
        (folder / "tidegate.yaml").write_text(json.dumps(configuration))

    def __enter__(self):
        command = [BINARY, "serve", "--config", str(self.folder / "tidegate.yaml"), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        log = []
        for line in self.process.stderr:
            log.append(line)
            if found := re.search(r"listening on http://(\S+)/mcp", line):
                self.address = found[1]
                break
        else:
            sys.exit("the server did not start:\n" + "".join(log))
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(SECONDS_MAX)

    def request(self, method: str, path: str, body: bytes, headers: dict) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS_MAX)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, answer

    def post(self, table: str, body: bytes, media_type: str, coding: str = "") -> dict:
        headers = {"Content-Type": media_type} | ({"Content-Encoding": coding} if coding else {})
        status, answer = self.request("POST", f"/data/{DATABASE}/{table}", body, headers)
        assert status == 200, (status, answer[:2000])
        return json.loads(answer)

    def answer(self, sql: str, media_type: str) -> bytes:
        """The answer to a statement over REST."""
        headers = {"Content-Type": "application/sql", "Accept": media_type}
        status, answer = self.request("POST", "/rest/sql", sql.encode(), headers)
        assert status == 200, (status, answer[:2000])
        return answer

    def rows(self, sql: str) -> list[dict]:
        return [json.loads(line) for line in self.answer(sql, "application/x-ndjson").splitlines()]

    def maintain(self, action: str) -> list[dict]:
        body = json.dumps({"database": DATABASE, "action": action}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        status, answer = self.request("POST", "/rest/tools/maintain_ingest/call", body, headers)
        assert status == 200, (status, answer[:2000])
        return json.loads(answer)["tables"]
