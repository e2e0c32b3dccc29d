"""The bulk API with the requests that Vector, Fluent Bit and Filebeat send: their headers, paths and bodies.

Each check prints a line; the exit status says whether all held.
"""

import base64
import gzip
import json
import sys
import tempfile
from pathlib import Path

import requests
from node import Node
from report import Report

# The sink `elasticsearch` of Vector: an index with the date, `create` for data streams.
VECTOR = (
    b'{"index":{"_index":"vector-2026.11.26","_type":"_doc"}}\n'
    b'{"file":"/var/log/app.log","host":"node-1","message":"started","source_type":"file","timestamp":"2026-11-26T10:00:00.000000001Z"}\n'
    b'{"index":{"_index":"vector-2026.11.27","_type":"_doc"}}\n'
    b'{"file":"/var/log/app.log","host":"node-1","message":"stopped","source_type":"file","timestamp":"2026-11-27T10:00:00Z"}\n'
)
# The output `es` of Fluent Bit, with Logstash_Format.
FLUENT_BIT = (
    b'{"create":{"_index":"logstash-2026.11.26"}}\n'
    b'{"@timestamp":"2026-11-26T10:00:00.123Z","log":"GET / 200","stream":"stdout"}\n'
    b'{"create":{"_index":"logstash-2026.11.26"}}\n'
    b'{"@timestamp":"2026-11-26T10:00:01.456Z","log":"GET /x 404","stream":"stderr"}\n'
)
# The output `elasticsearch` of Filebeat.
FILEBEAT = (
    b'{"create":{"_index":"filebeat-8.17.0"}}\n'
    b'{"@timestamp":"2026-11-26T10:00:00.000Z","message":"a","host":{"name":"node-1"},"log":{"offset":12}}\n'
)
NDJSON = {"Content-Type": "application/x-ndjson"}


def send(node: Node, path: str, body: bytes, headers: dict, key=None) -> requests.Response:
    key = key or f"Bearer {node.keys['sender']}"
    return requests.post(node.url + path, data=body, headers={"Authorization": key, **headers}, timeout=60)


def basic(node: Node, scheme="Basic") -> str:
    return f"{scheme} " + base64.b64encode(f"shipper:{node.keys['sender']}".encode()).decode()


def check_shippers(node: Node, report: Report):
    report.subject = "shippers"
    with report.check("Vector: gzip, one table for all days"):
        headers = {**NDJSON, "Content-Encoding": "gzip", "User-Agent": "Vector/0.43.0 (x86_64-unknown-linux-gnu)"}
        response = send(node, "/_bulk?timeout=60s", gzip.compress(VECTOR), headers)
        answer = response.json()
        assert response.status_code == 200 and answer["errors"] is False, answer
        assert [item["index"]["status"] for item in answer["items"]] == [201, 201], answer
        rows = node.sql("SELECT message, timestamp FROM vector ORDER BY message")
        assert [row["message"] for row in rows] == ["started", "stopped"], rows
        assert rows[0]["timestamp"].startswith("2026-11-26T10:00:00.000000001"), rows
    with report.check("Vector asks for the health and the version"):
        headers = {"User-Agent": "Vector/0.43.0", "Authorization": basic(node)}
        assert requests.get(node.url + "/_cluster/health", headers=headers, timeout=60).json()["status"] == "green"
        answer = requests.get(node.url + "/", headers=headers, timeout=60).json()
        assert answer["version"]["number"].startswith("8."), answer
    with report.check("Fluent Bit: HTTP_User and HTTP_Passwd"):
        headers = {**NDJSON, "User-Agent": "Fluent-Bit"}
        response = send(node, "/_bulk?filter_path=errors,items.*.error", FLUENT_BIT, headers, basic(node))
        assert response.status_code == 200 and response.json()["errors"] is False, response.text
        rows = node.sql('SELECT "@timestamp" AS time, log, stream FROM logstash ORDER BY 1')
        assert [row["log"] for row in rows] == ["GET / 200", "GET /x 404"], rows
    with report.check("Filebeat: probes, api_key, nested objects"):
        agent = {"User-Agent": "Elastic-filebeat/8.17.0 (linux; amd64)", "Authorization": basic(node, "ApiKey")}
        response = requests.get(node.url + "/", headers=agent, timeout=60)
        assert response.status_code == 200 and response.headers["X-Elastic-Product"] == "Elasticsearch", response.headers
        assert requests.get(node.url + "/_license", headers=agent, timeout=60).json()["license"]["status"] == "active"
        response = send(node, "/_bulk", FILEBEAT, {"Content-Type": "application/json; charset=UTF-8", **agent}, agent["Authorization"])
        assert response.status_code == 200 and response.json()["errors"] is False, response.text
        assert response.headers["X-Elastic-Product"] == "Elasticsearch"
        [row] = node.sql("SELECT * FROM filebeat_8_17_0")
        assert "node-1" in json.dumps(row["host"]), row


def check_rules(node: Node, report: Report):
    report.subject = "rules"
    with report.check("the index of the path"):
        response = send(node, "/app-logs/_bulk", b'{"create":{}}\n{"a":1}\n', NDJSON)
        assert response.json()["errors"] is False and node.sql("SELECT a FROM app_logs") == [{"a": 1}], response.text
    with report.check("items that are wrong fail, and the others are stored"):
        body = (
            b'{"create":{}}\n{"a":2}\n'
            b'{"create":{}}\n{"a":"text"}\n'
            b'{"create":{}}\n{"a":\n'
            b'{"delete":{"_id":"1"}}\n'
            b'{"index":{"_id":"1"}}\n{"a":3}\n'
        )
        answer = send(node, "/app-logs/_bulk", body, NDJSON).json()
        statuses = [next(iter(item.values()))["status"] for item in answer["items"]]
        assert answer["errors"] is True and statuses == [201, 400, 400, 400, 400], answer
        assert node.sql("SELECT a FROM app_logs ORDER BY a") == [{"a": 1}, {"a": 2}]
    with report.check("new tables survive documents that are wrong"):
        answer = send(node, "/fresh/_bulk", b'{"create":{}}\n{"a":\n{"create":{}}\n{"a":3}\n{"create":{}}\n{"b":true}\n', NDJSON).json()
        statuses = [item["create"]["status"] for item in answer["items"]]
        assert statuses == [400, 201, 201], answer
        assert node.sql("SELECT a, b FROM fresh ORDER BY a") == [{"a": 3, "b": None}, {"a": None, "b": True}]
    with report.check("tables that are not granted fail alone"):
        key = f"Bearer {node.keys['other']}"
        body = b'{"create":{"_index":"other"}}\n{"a":1}\n{"create":{"_index":"secret"}}\n{"a":1}\n'
        answer = send(node, "/_bulk", body, NDJSON, key).json()
        assert [item["create"]["status"] for item in answer["items"]] == [201, 403], answer
        assert "secret" not in json.dumps(node.sql("SELECT table_name FROM information_schema.tables"))
    for name, path, body, headers, status in [
        ("a body without line break", "/_bulk", b'{"create":{"_index":"a"}}', NDJSON, 400),
        ("a pipeline", "/_bulk?pipeline=geo", VECTOR, NDJSON, 400),
        ("another media type", "/_bulk", VECTOR, {"Content-Type": "text/plain"}, 415),
        ("a coding that is wrong", "/_bulk", VECTOR, {**NDJSON, "Content-Encoding": "gzip"}, 400),
    ]:
        with report.check(f"{name} is {status}"):
            response = send(node, path, body, headers)
            assert response.status_code == status and response.json()["status"] == status, response.text
    with report.check("another key is 401"):
        response = send(node, "/_bulk", VECTOR, NDJSON, "Basic " + base64.b64encode(b"a:b").decode())
        assert response.status_code == 401 and response.json()["error"]["type"] == "security_exception", response.text
    with report.check("the root is nothing for others"):
        for agent in ("curl/8.0", "Mozilla/5.0"):
            response = requests.get(node.url + "/", headers={"User-Agent": agent}, timeout=60)
            assert response.status_code == 404 and response.content == b"", response


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder))
        try:
            check_shippers(node, report)
            check_rules(node, report)
        finally:
            node.kill()
    return report.close()


sys.exit(main())
