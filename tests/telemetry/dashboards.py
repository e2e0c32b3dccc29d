"""The dashboard and the alerts of dashboards/ in a real Prometheus (Debian's `prometheus`), which scrapes a server of TIDEGATE_BINARY under load.

Each expression refers to metrics and labels of docs/reference/metrics.md only, and has a result. Each check prints a line; the exit status
says whether all held.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import requests
from node import Node, wait_until
from prometheus_process import start_prometheus
from report import Report

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "dashboards" / "grafana.json"
ALERTS = ROOT / "dashboards" / "prometheus-alerts.yaml"
ALERT_TESTS = Path(__file__).parent / "alerts.yaml"
METRICS_PAGE = ROOT / "docs" / "reference" / "metrics.md"

NODE = """
databases:
  - name: plant
    ingest: ./plant
    tables: {readings: {columns: {device: text, value: double}}}
mqtt: [{broker: "mqtt://127.0.0.1:1", topics: ["#"], table: plant.readings, client_id: away}]
auth: {keys: keys.json}
audit: {file: audit.jsonl}
results: {folder: ./results}
roles:
  - {name: sender, ingest: ["plant.*"]}
  - {name: reader, databases: [plant], toolsets: ["*"]}
  - {name: eager, databases: [plant], toolsets: ["*"], limits: {requests_per_second: 1, burst: 1}}
  - {name: observer, access: [metrics]}
"""
PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{alerts}']
scrape_configs:
  - job_name: tidegate
    static_configs: [{{targets: ['{node}']}}]
    authorization: {{credentials: {key}}}
"""
# What the load of this test does not cause.
WITHOUT_EVENTS = {"tidegate_internal_errors_total", "tidegate_secrets_found_total", "tidegate_sessions"}
# What Grafana puts in their places.
VARIABLES = {"$__rate_interval": "30s", "$job": ".*", "$instance": ".*"}
# Labels that Prometheus adds, and that of the limit of a bucket.
OTHER_LABELS = {"job", "instance", "le"}
METRIC = re.compile(r"\btidegate_\w+")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
GROUPED = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")


def labels_of_metrics() -> dict[str, set[str]]:
    """The labels of each metric, from the page about them."""
    rows = re.findall(r"^\| `(tidegate_\w+)` \| ([^|]*) \|", METRICS_PAGE.read_text(), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def expressions_of_dashboard() -> list[tuple[str, str]]:
    """The title of the panel, and the expression as Grafana sends it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(panel["title"], fill_in(target["expr"])) for panel in panels for target in panel.get("targets", [])]


def fill_in(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, f"an unknown variable in {expression}"
    return expression


def check_names(expression: str, known: dict[str, set[str]]):
    names = {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in METRIC.findall(expression)}
    assert names <= known.keys(), f"no metric has the name {names - known.keys()}: {expression}"
    labels = {label for label in LABEL.findall(expression)}
    labels |= {label.strip() for group in GROUPED.findall(expression) for label in group.split(",") if label.strip()}
    allowed = OTHER_LABELS.union(*(known[name] for name in names))
    assert labels <= allowed, f"no metric has the label {labels - allowed}: {expression}"


class Load:
    """Calls that are answered, that fail, that are refused, and rows, until it is stopped."""

    def __init__(self, node: Node):
        self._node = node
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        session = requests.Session()
        while not self._stopped.wait(0.1):
            self._turn(session)

    def _turn(self, session: requests.Session):
        node = self._node
        key = lambda role: {"Authorization": f"Bearer {node.keys[role]}"}
        rows = json.dumps([{"device": "pump", "value": 1.5}, {"device": "pump", "value": "warm"}])
        post = lambda path, role, body: session.post(node.url + path, json=body, headers=key(role), timeout=60)
        post("/rest/sql", "reader", {"sql": "SELECT device, avg(value) AS value FROM readings GROUP BY 1"})
        post("/rest/tools/sql/call", "reader", {"sql": "SELECT device FROM readings", "delivery": "blocks"})
        post("/rest/sql", "reader", {"sql": "SELECT nothing FROM readings"})
        post("/rest/tools/sql/call", "reader", {})
        # Without a type.
        session.post(node.url + "/rest/tools/sql/call", data="{}", headers=key("reader"), timeout=60)
        post("/rest/sql", "eager", {"sql": "SELECT 1"})
        json_rows = {**key("sender"), "Content-Type": "application/json"}
        session.post(node.url + "/data/plant/readings?on_reject=row", data=rows, headers=json_rows, timeout=60)
        node.call("list_tables", database="plant")


def query(prometheus: str, expression: str) -> list:
    response = requests.get(f"http://{prometheus}/api/v1/query", params={"query": expression}, timeout=60)
    answer = response.json()
    assert answer["status"] == "success", f"{answer.get('error')}: {expression}"
    return answer["data"]["result"]


def rules(prometheus: str) -> list[dict]:
    groups = requests.get(f"http://{prometheus}/api/v1/rules", timeout=60).json()["data"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def check_dashboard(prometheus: str, report: Report):
    known = labels_of_metrics()
    for title, expression in expressions_of_dashboard():
        with report.check(f"{title}: {expression}"):
            check_names(expression, known)
            query(prometheus, expression)
            if WITHOUT_EVENTS.isdisjoint(METRIC.findall(expression)):
                wait_until(lambda: query(prometheus, expression), "the expression has a result")


def check_alerts(prometheus: str, node: Node, report: Report):
    known = labels_of_metrics()
    with report.check("the rules are evaluated"):
        wait_until(lambda: rules(prometheus) and all(rule["health"] == "ok" for rule in rules(prometheus)), "each rule is evaluated")
    loaded = rules(prometheus)
    for rule in loaded:
        with report.check(rule["name"]):
            assert rule["health"] == "ok", rule
            check_names(rule["query"], known)
    with report.check("each alert has a test"):
        tested = set(re.findall(r'alertname="(\w+)"', ALERT_TESTS.read_text()))
        assert tested == {rule["name"] for rule in loaded}, (tested, [rule["name"] for rule in loaded])
    with report.check("rows that do not fit raise an alert"):
        wait_until(lambda: state(prometheus, "TidegateRowsRejected") == "firing", "the alert")
    with report.check("a server that is killed raises an alert"):
        assert state(prometheus, "TidegateDown") == "inactive"
        node.kill()
        wait_until(lambda: state(prometheus, "TidegateDown") in ("pending", "firing"), "the alert")


def state(prometheus: str, alert: str) -> str:
    return next(rule["state"] for rule in rules(prometheus) if rule["name"] == alert)


def main() -> int:
    report = Report()
    report.subject = "alerts"
    with report.check("fire for what they name, and for nothing else"):
        tests = subprocess.run(["promtool", "test", "rules", str(ALERT_TESTS)], capture_output=True, text=True)
        assert tests.returncode == 0, tests.stdout + tests.stderr
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = Node(folder, NODE, ("sender", "reader", "eager", "observer"))
        try:
            text = PROMETHEUS.format(alerts=ALERTS, node=node.address, key=node.keys["observer"])
            prometheus, own = start_prometheus(folder, lambda _: text)
            try:
                load = Load(node)
                try:
                    report.subject = "dashboard"
                    check_dashboard(own, report)
                finally:
                    load.stop()
                report.subject = "alerts"
                check_alerts(own, node, report)
            finally:
                prometheus.kill()
                prometheus.wait()
        finally:
            node.kill()
    return report.close()


sys.exit(main())
