//! The metrics of ended calls. Their series are looked up once for each name, outcome and transport, not for each call.

use std::collections::HashMap;

use metrics::{Counter, Histogram, counter, histogram};
use parking_lot::RwLock;
use tidegate_core::{CallTarget, TransportKind};
use tidegate_runtime::Job;

/// The series by the name of the entry. Names come from the registry, so that they are few.
#[derive(Default)]
pub(crate) struct CallMetrics {
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
    pub(crate) fn record(&self, job: &Job, outcome: &'static str) {
        let kind = job.target().kind();
        let name = match job.target() {
            CallTarget::Tool(name) | CallTarget::Prompt(name) => name.as_str(),
            CallTarget::Resource(_) | CallTarget::Completion(_) => "",
        };
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
