//! `/metrics`: call counts and durations, derived from events, and the numbers of databases that take rows and of receivers of
//! messages. Those count themselves, so that nothing is counted twice.
//!
//! The series of ended calls are looked up once for each name, outcome and transport, not for each call.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use metrics::{
    Counter, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use parking_lot::{Mutex, RwLock};
use tidegate_core::{ErrorKind, IngestTotals, StoredResults, TransportKind};
use tidegate_runtime::event::{Event, Subscriber};
use tidegate_runtime::{Auditor, Job, Registry};

const DURATION_BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// A number that only grows while the process runs.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Observations in buckets, with their sum and count.
    Histogram,
}

/// A metric: its name, type, labels and meaning.
#[derive(Debug)]
pub struct MetricDescription {
    /// The name. A name ends with its unit, and that of a counter with `_total`.
    pub name: &'static str,
    /// The type.
    pub kind: MetricType,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// The meaning, in one sentence.
    pub meaning: &'static str,
}

const fn describe(
    name: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> MetricDescription {
    MetricDescription { name, kind, labels, meaning }
}

/// All metrics.
pub const METRICS: [MetricDescription; 45] = {
    use MetricType::{Counter, Gauge, Histogram};
    [
        describe(
            "tidegate_calls_total",
            Counter,
            &["kind", "name", "outcome", "transport"],
            "Calls that ended. Outcome: done, or the kind of the error.",
        ),
        describe(
            "tidegate_call_duration_seconds",
            Histogram,
            &["kind", "name", "outcome"],
            "Duration of calls, from their acceptance to their end.",
        ),
        describe(
            "tidegate_calls_refused_total",
            Counter,
            &["kind", "outcome"],
            "Calls that were refused before their handler ran.",
        ),
        describe("tidegate_jobs_open", Gauge, &[], "Calls that run or wait."),
        describe("tidegate_answer_rows_total", Counter, &[], "Rows of the answers of ended calls."),
        describe(
            "tidegate_answer_bytes_total",
            Counter,
            &[],
            "Bytes of text and of bodies in the answers of ended calls.",
        ),
        describe(
            "tidegate_query_duration_seconds",
            Histogram,
            &["database"],
            "Duration of the queries of each database.",
        ),
        describe(
            "tidegate_entry_query_duration_seconds",
            Histogram,
            &["kind", "name"],
            "Duration of the queries of each tool, resource and prompt, in all databases.",
        ),
        describe(
            "tidegate_mcp_requests_total",
            Counter,
            &["method", "transport"],
            "Requests of MCP that were admitted, also lists and pings. Method: other for one that does not exist.",
        ),
        describe(
            "tidegate_http_requests_total",
            Counter,
            &["path", "status"],
            "Requests over HTTP. Path: that of the endpoint, such as /rest/tools/{name}. Status: that of the response.",
        ),
        describe(
            "tidegate_limits_reached_total",
            Counter,
            &["level", "measure"],
            "Requests and calls that reached a limit. Level: principal, tenant, tool or node. Measure: requests, calls, \
             rows, bytes or time.",
        ),
        describe("tidegate_secrets_found_total", Counter, &[], "Secrets that were found in answers."),
        describe("tidegate_internal_errors_total", Counter, &[], "Faults of the server; the log has their detail."),
        describe("tidegate_connections", Gauge, &["transport"], "Open connections."),
        describe("tidegate_sessions", Gauge, &["transport"], "Open sessions."),
        describe(
            "tidegate_messages_refused_total",
            Counter,
            &["transport"],
            "Messages that were refused before they became a call.",
        ),
        describe(
            "tidegate_registry_version",
            Gauge,
            &[],
            "Version of the registry. It increases when tools, resources or prompts change.",
        ),
        describe(
            "tidegate_runtime_tasks",
            Gauge,
            &[],
            "Live tasks of the asynchronous runtime (Tokio), not MCP tasks.",
        ),
        describe("tidegate_runtime_threads", Gauge, &[], "Threads of the asynchronous runtime, on which calls run."),
        describe("tidegate_stored_results", Gauge, &[], "Stored results on disk."),
        describe("tidegate_stored_results_bytes", Gauge, &[], "Size of the stored results on disk."),
        describe("tidegate_stored_results_open", Gauge, &[], "Stored results that are being written."),
        describe("tidegate_stored_result_blocks_total", Counter, &[], "Blocks of stored results that were written."),
        describe(
            "tidegate_stored_result_blocks_fetched_total",
            Counter,
            &[],
            "Blocks of stored results that callers fetched, alone or as all rows.",
        ),
        describe(
            "tidegate_stored_result_block_bytes_fetched_total",
            Counter,
            &[],
            "Bytes of the blocks that callers fetched, before compression.",
        ),
        describe(
            "tidegate_stored_results_removed_total",
            Counter,
            &["reason"],
            "Stored results that were removed. Reason: expired, or room to make room for newer ones.",
        ),
        describe("tidegate_audit_lines_total", Counter, &[], "Lines that were written to the audit log."),
        describe(
            "tidegate_audit_lines_dropped_total",
            Counter,
            &[],
            "Audit lines that are missing because the log could not be written.",
        ),
        describe("tidegate_audit_lines_waiting", Gauge, &[], "Audit lines that wait to be written."),
        describe(
            "tidegate_ingest_writes_total",
            Counter,
            &["database", "outcome"],
            "Writes to tables that take rows. Outcome: stored, repeated (answered from their key; to a network, they count as stored) or failed (the storage refused it, or did not answer).",
        ),
        describe(
            "tidegate_ingest_rows_total",
            Counter,
            &["database", "outcome"],
            "Rows that were stored, or rejected. Rejected rows count whether they are kept in the table of rejected rows or not.",
        ),
        describe(
            "tidegate_ingest_flushes_total",
            Counter,
            &["database", "outcome"],
            "Moves of rows from the log to files. Outcome: done or failed.",
        ),
        describe(
            "tidegate_ingest_bytes_total",
            Counter,
            &["database"],
            "Bytes that were stored: in a folder, those in the log or in files; elsewhere, those of the rows in memory.",
        ),
        describe("tidegate_ingest_compactions_total", Counter, &["database"], "Groups of files that were joined."),
        describe(
            "tidegate_ingest_compacted_files_total",
            Counter,
            &["database"],
            "Files that were joined with others.",
        ),
        describe("tidegate_ingest_waiting_rows", Gauge, &["database"], "Rows that are in the log only."),
        describe("tidegate_ingest_waiting_bytes", Gauge, &["database"], "Memory of the rows that are in the log only."),
        describe(
            "tidegate_ingest_oldest_age_seconds",
            Gauge,
            &["database"],
            "Age of the oldest row that is in the log only: how far data files lag behind the writes.",
        ),
        describe("tidegate_ingest_log_bytes", Gauge, &["database"], "Size of the log."),
        describe("tidegate_ingest_files", Gauge, &["database"], "Data files of the tables that take rows."),
        describe(
            "tidegate_mqtt_connected",
            Gauge,
            RECEIVER,
            "Whether the messages of the broker arrive: 1 if it has confirmed the subscriptions.",
        ),
        describe(
            "tidegate_mqtt_messages_total",
            Counter,
            RECEIVER,
            "Messages that arrived, with those that arrived again.",
        ),
        describe(
            "tidegate_mqtt_rows_total",
            Counter,
            &["broker", "client_id", "outcome"],
            "Rows of messages. Outcome: stored, or rejected (rows and whole messages).",
        ),
        describe("tidegate_mqtt_reconnects_total", Counter, RECEIVER, "Sessions with the broker after the first."),
        describe(
            "tidegate_mqtt_failed_writes_total",
            Counter,
            RECEIVER,
            "Writes of messages that failed. They are repeated, and their messages stay at the broker.",
        ),
    ]
};

/// The labels of a receiver of messages.
const RECEIVER: &[&str] = &["broker", "client_id"];

/// Counts events and renders the counts in the Prometheus text format.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    results: Option<Arc<dyn StoredResults>>,
    auditor: Option<Arc<dyn Auditor>>,
    ingest: IngestMetrics,
    calls: CallMetrics,
    requests: RequestMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics with all counts at zero.
    pub fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // Fails only for an empty list of buckets.
        let builder = builder
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &DURATION_BUCKETS)
            .unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, || {
            for MetricDescription { name, kind, meaning, .. } in METRICS {
                match kind {
                    MetricType::Counter => describe_counter!(name, meaning),
                    MetricType::Gauge => describe_gauge!(name, meaning),
                    MetricType::Histogram => describe_histogram!(name, meaning),
                }
            }
        });
        let (ingest, calls, requests) = Default::default();
        Self { recorder, handle, results: None, auditor: None, ingest, calls, requests }
    }

    /// Adds the metrics of the stored results.
    #[must_use]
    pub fn with_results(self, results: Option<Arc<dyn StoredResults>>) -> Self {
        Self { results, ..self }
    }

    /// Adds the metrics of the audit log.
    #[must_use]
    pub fn with_auditor(self, auditor: Option<Arc<dyn Auditor>>) -> Self {
        Self { auditor, ..self }
    }

    /// Adds the metrics of the databases that take rows. `reader` replaces an earlier one.
    pub fn read_ingest(&self, reader: IngestReader) {
        self.ingest.set_reader(reader);
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self, registry: &Registry) -> String {
        with_local_recorder(&self.recorder, || {
            gauge!("tidegate_jobs_open").set(registry.jobs().open_count() as f64);
            gauge!("tidegate_registry_version").set(registry.snapshot().version() as f64);
            let runtime = tokio::runtime::Handle::current().metrics();
            gauge!("tidegate_runtime_tasks").set(runtime.num_alive_tasks() as f64);
            gauge!("tidegate_runtime_threads").set(runtime.num_workers() as f64);
            if let Some(results) = &self.results {
                record_results(results.as_ref());
            }
            if let Some(auditor) = &self.auditor {
                record_audit(auditor.as_ref());
            }
            self.ingest.record();
        });
        self.handle.run_upkeep();
        self.handle.render()
    }

    /// Moves samples into their buckets, so that they do not accumulate between scrapes.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Counts a request that the endpoint `path` has answered with `status`.
    pub(crate) fn count_http_request(&self, path: &'static str, status: u16) {
        with_local_recorder(&self.recorder, || self.requests.count_http(path, status));
    }

    /// Labels come only from the registry and from closed lists: a caller's text could grow the set of series.
    fn record_event(&self, event: Event<'_>) {
        let connections = |transport: TransportKind| gauge!("tidegate_connections", "transport" => transport.name());
        let sessions = |transport: TransportKind| gauge!("tidegate_sessions", "transport" => transport.name());
        match event {
            Event::CallEnded { job, outcome } => {
                self.calls.record(job, outcome);
                if job.protection().secret_count() > 0 {
                    counter!("tidegate_secrets_found_total").increment(job.protection().secret_count());
                }
            }
            Event::CallRefused { kind, outcome, .. } => {
                counter!("tidegate_calls_refused_total", "kind" => kind, "outcome" => outcome).increment(1);
            }
            Event::LimitReached { level, measure, .. } => {
                let (level, measure) = (level.name(), measure.name());
                counter!("tidegate_limits_reached_total", "level" => level, "measure" => measure).increment(1);
            }
            Event::QueryEnded { job, database, elapsed, .. } => {
                histogram!("tidegate_query_duration_seconds", "database" => database.to_owned()).record(elapsed);
                let (kind, name) = (job.target().kind(), job.entry_name().to_owned());
                histogram!("tidegate_entry_query_duration_seconds", "kind" => kind, "name" => name).record(elapsed);
            }
            Event::RequestAdmitted { method, transport } => self.requests.count_message(method, transport),
            Event::ErrorDetail { kind: ErrorKind::Internal, .. } => {
                counter!("tidegate_internal_errors_total").increment(1);
            }
            Event::ErrorDetail { .. } => {}
            Event::ConnectionOpened { transport } => connections(transport).increment(1),
            Event::ConnectionClosed { transport } => connections(transport).decrement(1),
            Event::SessionOpened { transport } => sessions(transport).increment(1),
            Event::SessionClosed { transport } => sessions(transport).decrement(1),
            Event::MessageRefused { transport, .. } => {
                counter!("tidegate_messages_refused_total", "transport" => transport.name()).increment(1);
            }
            Event::CallStarted { .. }
            | Event::CallWaiting { .. }
            | Event::QueryStep { .. }
            | Event::ConnectionsScarce { .. }
            | Event::TransportSwitched { .. }
            | Event::RegistryChanged { .. } => {}
        }
    }
}

/// Records the state of the result store. The store itself counts, so that nothing is counted twice.
fn record_results(results: &dyn StoredResults) {
    let stats = results.stats();
    gauge!("tidegate_stored_results").set(stats.results as f64);
    gauge!("tidegate_stored_results_bytes").set(stats.bytes as f64);
    gauge!("tidegate_stored_results_open").set(stats.running as f64);
    counter!("tidegate_stored_result_blocks_total").absolute(stats.blocks_written);
    counter!("tidegate_stored_result_blocks_fetched_total").absolute(stats.blocks_read);
    counter!("tidegate_stored_result_block_bytes_fetched_total").absolute(stats.block_bytes_read);
    counter!("tidegate_stored_results_removed_total", "reason" => "expired").absolute(stats.expired);
    counter!("tidegate_stored_results_removed_total", "reason" => "room").absolute(stats.evicted);
}

fn record_audit(auditor: &dyn Auditor) {
    let stats = auditor.stats();
    counter!("tidegate_audit_lines_total").absolute(stats.written);
    counter!("tidegate_audit_lines_dropped_total").absolute(stats.dropped);
    gauge!("tidegate_audit_lines_waiting").set(stats.waiting as f64);
}

impl Subscriber for Metrics {
    fn on_event(&self, event: Event<'_>) {
        with_local_recorder(&self.recorder, || self.record_event(event));
    }
}

/// The series of requests, which are looked up once for each endpoint and status, and for each method and transport.
#[derive(Default)]
struct RequestMetrics {
    http: RwLock<HashMap<(&'static str, u16), Counter>>,
    messages: RwLock<HashMap<(&'static str, TransportKind), Counter>>,
}

impl RequestMetrics {
    fn count_http(&self, path: &'static str, status: u16) {
        count(
            &self.http,
            (path, status),
            || counter!("tidegate_http_requests_total", "path" => path, "status" => status.to_string()),
        );
    }

    fn count_message(&self, method: &'static str, transport: TransportKind) {
        count(
            &self.messages,
            (method, transport),
            || counter!("tidegate_mcp_requests_total", "method" => method, "transport" => transport.name()),
        );
    }
}

/// Increments the counter of `key`, which `register` makes when the key occurs first.
fn count<K: Eq + Hash>(counters: &RwLock<HashMap<K, Counter>>, key: K, register: impl FnOnce() -> Counter) {
    if let Some(counter) = counters.read().get(&key) {
        return counter.increment(1);
    }
    counters.write().entry(key).or_insert_with(register).increment(1);
}

/// The series by the name of the entry. Names come from the registry, so that they are few.
#[derive(Default)]
struct CallMetrics {
    by_name: RwLock<HashMap<String, Vec<CallSeries>>>,
}

struct CallSeries {
    kind: &'static str,
    outcome: &'static str,
    transport: TransportKind,
    calls: Counter,
    duration: Histogram,
    rows: Counter,
    bytes: Counter,
}

impl CallMetrics {
    /// Counts `job`, which ended with `outcome`. Runs with the recorder of the metrics.
    fn record(&self, job: &Job, outcome: &'static str) {
        let kind = job.target().kind();
        let name = job.entry_name();
        let transport = job.caller().origin.transport;
        let is_same =
            |series: &&CallSeries| series.kind == kind && series.outcome == outcome && series.transport == transport;
        if let Some(series) = self.by_name.read().get(name).and_then(|series| series.iter().find(is_same)) {
            return series.count(job);
        }
        let mut by_name = self.by_name.write();
        let all = by_name.entry(name.to_owned()).or_default();
        if !all.iter().any(|series| is_same(&series)) {
            all.push(CallSeries::new(kind, name, outcome, transport));
        }
        if let Some(series) = all.iter().find(is_same) {
            series.count(job);
        }
    }
}

impl CallSeries {
    fn new(kind: &'static str, name: &str, outcome: &'static str, transport: TransportKind) -> Self {
        let name = name.to_owned();
        Self {
            kind,
            outcome,
            transport,
            calls: counter!(
                "tidegate_calls_total",
                "kind" => kind, "name" => name.clone(), "outcome" => outcome, "transport" => transport.name()
            ),
            duration: histogram!(
                "tidegate_call_duration_seconds", "kind" => kind, "name" => name, "outcome" => outcome
            ),
            rows: counter!("tidegate_answer_rows_total"),
            bytes: counter!("tidegate_answer_bytes_total"),
        }
    }

    fn count(&self, job: &Job) {
        self.calls.increment(1);
        self.duration.record(job.elapsed());
        self.rows.increment(job.usage().rows());
        self.bytes.increment(job.usage().bytes());
    }
}

/// A database that takes rows, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestNumbers {
    /// The name of the database.
    pub database: String,
    /// What happened to it.
    pub totals: IngestTotals,
    /// Its log and its files, if it is a folder.
    pub folder: Option<FolderNumbers>,
}

/// The log and the files of a database that is a folder, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderNumbers {
    /// Rows that are in the log only.
    pub waiting_rows: u64,
    /// Bytes of these rows in memory.
    pub waiting_bytes: u64,
    /// The age of the oldest of these rows; zero if there are none.
    pub oldest_age: Duration,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Data files of all tables.
    pub files: u64,
}

/// A receiver of messages of a broker, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiverNumbers {
    /// The address of the broker.
    pub broker: String,
    /// The name of the session.
    pub client_id: String,
    /// Whether messages arrive now.
    pub is_connected: bool,
    /// Messages that arrived, with those that arrived again.
    pub messages: u64,
    /// Rows that were stored.
    pub rows: u64,
    /// Rows, and whole messages, that were rejected.
    pub rejected_rows: u64,
    /// Sessions after the first.
    pub reconnects: u64,
    /// Writes that failed and were repeated.
    pub failed_writes: u64,
}

/// What takes rows now, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestReading {
    /// The databases.
    pub databases: Vec<IngestNumbers>,
    /// The receivers.
    pub receivers: Vec<ReceiverNumbers>,
}

/// Reads the numbers of everything that takes rows now.
pub type IngestReader = Arc<dyn Fn() -> IngestReading + Send + Sync>;

/// The reader, and what has gauges.
#[derive(Default)]
struct IngestMetrics(Mutex<RecordedIngest>);

#[derive(Default)]
struct RecordedIngest {
    reader: Option<IngestReader>,
    folders: BTreeSet<String>,
    /// By broker and session.
    receivers: BTreeSet<(String, String)>,
}

impl IngestMetrics {
    fn set_reader(&self, reader: IngestReader) {
        self.0.lock().reader = Some(reader);
    }

    /// Records into the recorder of this thread.
    fn record(&self) {
        let mut state = self.0.lock();
        let Some(reader) = &state.reader else { return };
        let IngestReading { databases, receivers } = reader();
        let folders = databases.iter().filter(|numbers| numbers.folder.is_some());
        let current: BTreeSet<String> = folders.map(|numbers| numbers.database.clone()).collect();
        // What a folder that is gone had last is no longer so.
        for database in state.folders.difference(&current) {
            record_gauges(database, &FolderNumbers::default());
        }
        for numbers in &databases {
            record_writes(numbers);
            if let Some(folder) = &numbers.folder {
                record_upkeep(&numbers.database, &numbers.totals);
                record_gauges(&numbers.database, folder);
            }
        }
        state.folders = current;
        let current: BTreeSet<(String, String)> =
            receivers.iter().map(|numbers| (numbers.broker.clone(), numbers.client_id.clone())).collect();
        for (broker, client_id) in state.receivers.difference(&current) {
            record_connection(broker, client_id, false);
        }
        receivers.iter().for_each(record_receiver);
        state.receivers = current;
    }
}

fn record_receiver(numbers: &ReceiverNumbers) {
    let (broker, client_id) = (|| numbers.broker.clone(), || numbers.client_id.clone());
    record_connection(&numbers.broker, &numbers.client_id, numbers.is_connected);
    for (outcome, count) in [("stored", numbers.rows), ("rejected", numbers.rejected_rows)] {
        let rows = counter!("tidegate_mqtt_rows_total", "broker" => broker(), "client_id" => client_id(), "outcome" => outcome);
        rows.absolute(count);
    }
    let totals = [
        ("tidegate_mqtt_messages_total", numbers.messages),
        ("tidegate_mqtt_reconnects_total", numbers.reconnects),
        ("tidegate_mqtt_failed_writes_total", numbers.failed_writes),
    ];
    for (name, count) in totals {
        counter!(name, "broker" => broker(), "client_id" => client_id()).absolute(count);
    }
}

fn record_connection(broker: &str, client_id: &str, is_connected: bool) {
    let gauge = gauge!("tidegate_mqtt_connected", "broker" => broker.to_owned(), "client_id" => client_id.to_owned());
    gauge.set(if is_connected { 1.0 } else { 0.0 });
}

fn record_writes(numbers: &IngestNumbers) {
    let (database, written) = (|| numbers.database.clone(), &numbers.totals.written);
    let writes = [("stored", written.writes), ("repeated", written.repeated_writes), ("failed", written.failed_writes)];
    for (outcome, count) in writes {
        counter!("tidegate_ingest_writes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    for (outcome, count) in [("stored", written.rows), ("rejected", written.rejected_rows)] {
        counter!("tidegate_ingest_rows_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    counter!("tidegate_ingest_bytes_total", "database" => database()).absolute(written.bytes);
}

fn record_upkeep(database: &str, totals: &IngestTotals) {
    let database = || database.to_owned();
    for (outcome, count) in [("done", totals.flushes), ("failed", totals.failed_flushes)] {
        counter!("tidegate_ingest_flushes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    counter!("tidegate_ingest_compactions_total", "database" => database()).absolute(totals.compactions);
    counter!("tidegate_ingest_compacted_files_total", "database" => database()).absolute(totals.compacted_files);
}

fn record_gauges(database: &str, numbers: &FolderNumbers) {
    let database = || database.to_owned();
    gauge!("tidegate_ingest_waiting_rows", "database" => database()).set(numbers.waiting_rows as f64);
    gauge!("tidegate_ingest_waiting_bytes", "database" => database()).set(numbers.waiting_bytes as f64);
    gauge!("tidegate_ingest_oldest_age_seconds", "database" => database()).set(numbers.oldest_age.as_secs_f64());
    gauge!("tidegate_ingest_log_bytes", "database" => database()).set(numbers.log_bytes as f64);
    gauge!("tidegate_ingest_files", "database" => database()).set(numbers.files as f64);
}
