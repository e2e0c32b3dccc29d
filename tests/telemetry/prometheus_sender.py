"""Remote write with a real Prometheus (Debian's `prometheus`), which scrapes itself and writes to a server of TIDEGATE_BINARY.

Its samples are compared with those that it has itself. Each check prints a line; the exit status says whether all held.
"""

import sys
import tempfile
from pathlib import Path

import requests
from node import Node, wait_until
from prometheus_process import start_prometheus
from report import Report

CONFIGURATION = """
global: {{scrape_interval: 1s, external_labels: {{site: plant}}}}
scrape_configs:
  - job_name: self
    static_configs: [{{targets: ['{own}']}}]
remote_write:
  - url: {url}/api/v1/write
    authorization: {{credentials: {key}}}
"""


def check(node: Node, own: str, report: Report):
    report.subject = "remote write"
    with report.check("samples arrive"):
        wait_until(lambda: has_samples(node, 3), "three samples of `up`")
    with report.check("each sample is stored once, with its value"):
        rows = node.sql(
            "SELECT CAST(time AS BIGINT) AS t, value, count(*) AS n FROM prometheus_samples "
            "WHERE metric = 'process_cpu_seconds_total' GROUP BY 1, 2 ORDER BY 1"
        )
        assert rows and all(row["n"] == 1 for row in rows), rows
    with report.check("the values are those of Prometheus itself"):
        # The newest samples may not be written yet.
        query = "process_cpu_seconds_total[1h]"
        answer = requests.get(f"http://{own}/api/v1/query", params={"query": query}, timeout=60).json()
        expected = [float(value) for _, value in answer["data"]["result"][0]["values"]]
        rows = node.sql("SELECT time, value FROM prometheus_samples WHERE metric = 'process_cpu_seconds_total' ORDER BY time")
        stored = [row["value"] for row in rows]
        common = min(len(stored), len(expected))
        assert common >= 3 and stored[:common] == expected[:common], (stored, expected)
    with report.check("query_metrics groups by labels"):
        answer = node.json("query_metrics", metric="up", aggregation="last", by=["job", "site"], after="-1h", points=1)
        assert answer["series"] == [{"labels": {"job": "self", "site": "plant"}, "values": [1]}], answer
    with report.check("list_metrics has the labels"):
        answer = node.json("list_metrics", pattern="up")
        # Each listed metric has the same values of them.
        assert {"job", "instance", "site"} <= set(answer["shared_labels"]), answer
    with report.check("samples come after the server was away"):
        before = len(node.sql("SELECT time FROM prometheus_samples WHERE metric = 'up'"))
        node.kill()
        node.start(node.address)
        wait_until(lambda: has_samples(node, before + 3), "further samples of `up`")
        rows = node.sql("SELECT time, count(*) AS n FROM prometheus_samples WHERE metric = 'up' GROUP BY time HAVING count(*) > 1")
        assert rows == [], rows


def has_samples(node: Node, count: int) -> bool:
    try:
        return len(node.sql("SELECT time FROM prometheus_samples WHERE metric = 'up'")) >= count
    except AssertionError:
        return False


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = Node(folder)
        try:
            configuration = lambda own: CONFIGURATION.format(own=own, url=node.url, key=node.keys["sender"])
            prometheus, own = start_prometheus(folder, configuration)
            try:
                check(node, own, report)
            finally:
                prometheus.kill()
                prometheus.wait()
        finally:
            node.kill()
    return report.close()


sys.exit(main())
