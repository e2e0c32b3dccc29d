"""OpenTelemetry with a real sender: PyPI `opentelemetry-sdk` and its exporters over HTTP, in Protocol Buffers with and without gzip.

Logs, metrics and traces are sent to a server of TIDEGATE_BINARY, and asked for over MCP. Each check prints a line; the exit status says
whether all held.
"""

import logging
import sys
import tempfile
from pathlib import Path

import requests
from node import Node
from opentelemetry import trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from report import Report

RECORDS = 5_000
RESOURCE = Resource.create({"service.name": "shop", "service.version": "1.2.3", "host.name": "node-1"})


def send_logs(node: Node, compression: Compression, records: int):
    exporter = OTLPLogExporter(
        endpoint=f"{node.url}/v1/logs", headers={"authorization": f"Bearer {node.keys['sender']}"}, compression=compression
    )
    provider = LoggerProvider(resource=RESOURCE)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter, max_queue_size=max(records, 512)))
    logger = provider.get_logger("checkout", "7")
    for index in range(records):
        logger.emit(
            timestamp=1_700_000_000_000_000_001 + index,
            observed_timestamp=1_700_000_001_000_000_000 + index,
            severity_number=SeverityNumber.ERROR if index % 10 == 0 else SeverityNumber.INFO,
            severity_text="ERROR" if index % 10 == 0 else "INFO",
            body=f"order {index} of {compression.value}",
            attributes={"order": index, "paid": index % 2 == 0, "customer": "Ännchen"},
        )
    assert provider.force_flush(60_000)
    provider.shutdown()


def send_trace(node: Node) -> str:
    exporter = OTLPSpanExporter(
        endpoint=f"{node.url}/v1/traces",
        headers={"authorization": f"Bearer {node.keys['sender']}"},
        compression=Compression.Gzip,
    )
    provider = TracerProvider(resource=RESOURCE)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("checkout")
    with tracer.start_as_current_span("GET /checkout", kind=SpanKind.SERVER) as root:
        with tracer.start_as_current_span("SELECT stock", kind=SpanKind.CLIENT) as query:
            query.set_status(Status(StatusCode.ERROR, "timeout"))
            query.add_event("retry", {"attempt": 1})
        with tracer.start_as_current_span("render"):
            pass
        trace_id = trace.format_trace_id(root.get_span_context().trace_id)
    assert provider.force_flush(60_000)
    provider.shutdown()
    return trace_id


def send_metrics(node: Node):
    exporter = OTLPMetricExporter(
        endpoint=f"{node.url}/v1/metrics", headers={"authorization": f"Bearer {node.keys['sender']}"}
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider(resource=RESOURCE, metric_readers=[reader])
    meter = provider.get_meter("checkout")
    orders = meter.create_counter("shop.orders", unit="1", description="Orders")
    duration = meter.create_histogram("shop.duration", unit="ms")
    stock = meter.create_gauge("shop.stock")
    for country, count in (("de", 3), ("fr", 5)):
        orders.add(count, {"country": country})
        duration.record(12.5 * count, {"country": country})
        stock.set(100 + count, {"country": country})
    assert provider.force_flush(60_000)
    # Further points of the same series.
    orders.add(4, {"country": "de"})
    assert provider.force_flush(60_000)
    provider.shutdown()


def check_logs(node: Node, report: Report):
    report.subject = "logs"
    before = {tool["name"] for tool in node_tools(node)}
    with report.check("no log source before the first record"):
        assert "query_logs" not in before and "get_trace" not in before, before
    for compression in (Compression.NoCompression, Compression.Gzip):
        with report.check(f"all records are stored: {compression.value}"):
            send_logs(node, compression, RECORDS)
            found = node.sql(
                "SELECT count(*) AS n, count(DISTINCT body) AS bodies, sum(CASE WHEN severity_text = 'ERROR' THEN 1 ELSE 0 END) AS errors "
                f"FROM otel_logs WHERE body LIKE '% of {compression.value}'"
            )
            assert found == [{"n": RECORDS, "bodies": RECORDS, "errors": RECORDS // 10}], found
    with report.check("values are exact"):
        [row] = node.sql("SELECT * FROM otel_logs WHERE body = 'order 7 of gzip'")
        assert row["time"].startswith("2023-11-14T22:13:20.000000008"), row
        assert row["service_name"] == "shop" and row["severity_number"] == 9 and row["scope_name"] == "checkout", row
        assert '"customer":"Ännchen"' in str(row["attributes"]).replace(" ", "").replace("'", '"'), row
    with report.check("query_logs finds them"):
        answer = node.json("query_logs", query="\"order 10 of gzip\"", limit=5, facets=["severity_text"])
        assert "order 10 of gzip" in str(answer) and "ERROR" in str(answer), answer
    with report.check("list_logs_sources has the source"):
        assert "otel_logs" in node.call("list_logs_sources")["text"]


def check_traces(node: Node, report: Report):
    report.subject = "traces"
    with report.check("get_trace has the tree"):
        trace_id = send_trace(node)
        answer = node.call("get_trace", trace_id=trace_id.upper())
        lines = answer["text"].splitlines()
        assert lines[0].startswith(f"trace {trace_id}, 3 spans"), lines
        assert lines[1].startswith("GET /checkout [shop] SERVER"), lines
        assert lines[2].startswith("├─ SELECT stock [shop] CLIENT") and lines[2].endswith("ERROR"), lines
        assert lines[3].startswith("└─ render [shop] INTERNAL"), lines
        assert [span["depth"] for span in answer["structured"]["spans"]] == [0, 1, 1], answer
    with report.check("a trace that does not exist"):
        try:
            node.call("get_trace", trace_id="0" * 31 + "1")
        except AssertionError as error:
            assert "there is no trace" in str(error), error
        else:
            raise AssertionError("it was found")


def check_metrics(node: Node, report: Report):
    report.subject = "metrics"
    send_metrics(node)
    with report.check("sources are those of the tables"):
        sources = {source["name"] for source in node.json("list_metrics")["sources"]}
        expected = {"otel_metrics_gauge", "otel_metrics_sum", "otel_metrics_histogram.count", "otel_metrics_histogram.sum"}
        assert sources == expected, sources
    with report.check("query_metrics has series by attributes"):
        answer = node.json("query_metrics", source="otel_metrics_sum", metric="shop.orders", aggregation="last", by=["country"], after="-1h", points=1)
        values = {series["labels"].get("country"): series["values"] for series in answer["series"]}
        assert values == {"de": [7], "fr": [5]}, answer
    with report.check("labels select"):
        answer = node.json("query_metrics", source="otel_metrics_gauge", metric="shop.stock", aggregation="last", labels={"country": "fr"}, after="-1h", points=1)
        assert [series["values"] for series in answer["series"]] == [[105]], answer
        assert answer["series"][0]["labels"]["resource.host.name"] == "node-1", answer
    with report.check("list_metrics has the attributes"):
        answer = node.json("list_metrics", source="otel_metrics_histogram.sum")
        assert answer["metrics"][0]["name"] == "shop.duration" and "country" in answer["metrics"][0]["labels"], answer


def check_refusals(node: Node, report: Report):
    report.subject = "refusals"
    message = ExportLogsServiceRequest()
    message.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=5, trace_id=b"short")
    protobuf = {"Content_Type": "application/x-protobuf"}
    with report.check("a record that is wrong is a partial success"):
        response = node.post("/v1/logs", message.SerializeToString(), **protobuf)
        answer = ExportLogsServiceResponse.FromString(response.content)
        assert response.status_code == 200 and answer.partial_success.rejected_log_records == 1, (response, answer)
        assert "trace_id" in answer.partial_success.error_message, answer
    with report.check("a body that is wrong is 400"):
        response = node.post("/v1/logs", b"\xff\xff", **protobuf)
        assert response.status_code == 400 and response.headers["Content-Type"] == "application/x-protobuf", response
    with report.check("another media type is 415"):
        assert node.post("/v1/logs", b"a", Content_Type="text/plain").status_code == 415
    with report.check("without a key is 401"):
        response = requests.post(f"{node.url}/v1/logs", data=b"", headers={"Content-Type": "application/x-protobuf"}, timeout=60)
        assert response.status_code == 401, response
    for role in ("other", "reader"):
        with report.check(f"a table that is not granted is 403: {role}"):
            message = ExportLogsServiceRequest()
            message.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=5)
            count = node.sql("SELECT count(*) AS n FROM otel_logs")
            response = node.post("/v1/logs", message.SerializeToString(), role=role, **protobuf)
            assert response.status_code == 403, (response.status_code, response.content)
            assert node.sql("SELECT count(*) AS n FROM otel_logs") == count
    with report.check("what was acknowledged is there after a kill"):
        count = node.sql("SELECT count(*) AS n FROM otel_logs")
        send_logs(node, Compression.Gzip, 100)
        node.kill()
        node.start(node.address)
        assert node.sql("SELECT count(*) AS n FROM otel_logs") == [{"n": count[0]["n"] + 100}]


def node_tools(node: Node) -> list:
    headers = {"Authorization": f"Bearer {node.keys['reader']}"}
    return requests.get(f"{node.url}/rest/tools", headers=headers, timeout=60).json()["tools"]


def main() -> int:
    logging.getLogger("opentelemetry").setLevel(logging.WARNING)
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder))
        try:
            check_logs(node, report)
            check_traces(node, report)
            check_metrics(node, report)
            check_refusals(node, report)
        finally:
            node.kill()
    return report.close()


sys.exit(main())
