"""Tests each legacy revision over stdio without an SDK, because SDKs request only their newest revision.

Runs under `with_server.py`; TIDEGATE_BINARY names the binary. The messages are recorded, so that the schema checker
covers every revision, not only those that clients choose.
"""

import os
import sys

from raw_stdio import Connection, connect
from report import Report

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST_LEGACY = LEGACY[-1]
UNKNOWN_REVISIONS = ("2019-01-01", "2026-07-28")
WITH_BATCHES = "2025-03-26"


def check_revision(connection: Connection, revision: str, report: Report) -> None:
    with report.check("initialize is answered with the requested revision"):
        result = connection.initialize(revision)["result"]
        assert result["protocolVersion"] == revision, result["protocolVersion"]
    with report.check("ping"):
        assert connection.request("ping")["result"] == {}
    with report.check("lists"):
        assert connection.request("tools/list")["result"]["tools"]
        assert connection.request("resources/templates/list")["result"]["resourceTemplates"]
        assert "prompts" in connection.request("prompts/list")["result"]
    with report.check("a resource is read"):
        resources = connection.request("resources/list")["result"]["resources"]
        assert connection.request("resources/read", {"uri": resources[0]["uri"]})["result"]["contents"]
    with report.check("an unknown resource is -32002"):
        answer = connection.request("resources/read", {"uri": "tidegate://nowhere/nothing"})
        assert answer["error"]["code"] == -32002, answer
    with report.check("a call is answered, with progress on request"):
        arguments = {"database": "shop", "table": "orders"}
        params = {"name": "query", "arguments": arguments, "_meta": {"progressToken": "p"}}
        assert "Ann" in connection.request("tools/call", params)["result"]["content"][0]["text"]
    with report.check("an unknown method is -32601"):
        assert connection.request("no/such/method")["error"]["code"] == -32601
    if revision >= WITH_BATCHES:
        with report.check("a batch is answered in 2025-03-26 and rejected since"):
            check_batch(connection, revision)
    with report.check("malformed JSON is -32700 and the connection is still usable"):
        connection.send_text("{")
        assert connection.receive()["error"]["code"] == -32700
        assert connection.request("ping")["result"] == {}


def check_batch(connection: Connection, revision: str) -> None:
    pings = [{"jsonrpc": "2.0", "id": name, "method": "ping"} for name in ("a", "b")]
    connection.send(pings)
    answer = connection.receive()
    if revision == WITH_BATCHES:
        assert sorted(part["id"] for part in answer) == ["a", "b"], answer
    else:
        assert answer["error"]["code"] == -32600, answer


def main() -> int:
    command = [os.environ["TIDEGATE_BINARY"], "stdio", os.environ["TIDEGATE_SHOP"]]
    report = Report()
    for revision in LEGACY:
        report.subject = f"raw {revision}"
        with report.check("the server exits successfully"), connect(command) as connection:
            check_revision(connection, revision, report)
    for revision in UNKNOWN_REVISIONS:
        report.subject = f"raw {revision}"
        with report.check("the server exits successfully"), connect(command) as connection:
            with report.check(f"initialize offers {NEWEST_LEGACY} instead"):
                result = connection.initialize(revision)["result"]
                assert result["protocolVersion"] == NEWEST_LEGACY, result
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
