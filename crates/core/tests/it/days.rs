//! What calls take in a day: charged while they run, refused when it is used up, and kept over a restart.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidegate_core::event::{Events, Subscriber};
use tidegate_core::{
    Allowance, CallLimits, Caller, Daily, Error, ErrorKind, Grants, Handler, Limits, Metadata, Principal, Proof,
    Registry, SnapshotBuilder, Tool, handler_fn,
};

use crate::host::{Host, LOCAL, Recorder, called_by, settle, told, tool_call};

const HOUR: Duration = Duration::from_secs(3_600);

/// A node whose wall clock the test holds; it begins at 23:00 of some day.
struct Node {
    host: Host,
    time: Arc<Mutex<SystemTime>>,
}

impl Node {
    fn new(limits: Limits) -> Self {
        let time = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + 20_000 * 24 * HOUR + 23 * HOUR));
        Self::at(time, limits)
    }

    fn at(time: Arc<Mutex<SystemTime>>, limits: Limits) -> Self {
        let of_tool =
            |daily| CallLimits { of_all: Allowance { daily, ..Allowance::default() }, ..CallLimits::default() };
        let scarce = of_tool(Daily { rows: Some(5), ..Daily::default() });
        let tools = SnapshotBuilder::new()
            .tool(Tool::new("rows", "", counting(3)))
            .tool(Tool::new("scarce", "", counting(3)).with_limits(scarce))
            .tool(Tool::new("endless", "", streaming()))
            .tool(Tool::new("work", "", working()));
        let heard = Arc::new(Recorder::default());
        let events = Events::new([heard.clone() as Arc<dyn Subscriber>]);
        let clock = time.clone();
        let registry = Registry::with_clock(tools.limits(limits).build(), events, move || *clock.lock());
        Self { host: Host { registry, heard }, time }
    }

    fn advance(&self, time: Duration) {
        *self.time.lock() += time;
    }

    async fn ask(&self, caller: &Caller, tool: &str) -> String {
        self.host.ask(called_by(caller, tool_call(tool))).await
    }
}

fn counting(rows: u64) -> Arc<dyn Handler> {
    handler_fn(move |job, reply| async move {
        job.count_rows(rows);
        reply.text("ok").await?;
        Ok(Metadata::new())
    })
}

/// Works until it is told to stop.
fn working() -> Arc<dyn Handler> {
    handler_fn(|job, _| async move {
        job.cancelled().await;
        Err(Error::new(ErrorKind::Cancelled, "stopped"))
    })
}

/// Ten bytes after the other.
fn streaming() -> Arc<dyn Handler> {
    handler_fn(|_, reply| async move {
        loop {
            reply.text("0123456789").await?;
        }
    })
}

fn of(subject: &str, tenant: Option<&str>) -> Caller {
    let principal = Principal::new(subject, Proof::Key, Arc::new(Grants::everything()));
    Caller::new(Arc::new(Principal { tenant: tenant.map(str::to_owned), ..principal }), LOCAL)
}

fn daily(daily: Daily) -> Allowance {
    Allowance { daily, ..Allowance::default() }
}

fn rows(rows: u64) -> Daily {
    Daily { rows: Some(rows), ..Daily::default() }
}

#[tokio::test(start_paused = true)]
async fn rows_of_a_day_are_used_up_and_begin_anew_with_the_next() {
    let node = Node::new(Limits { of_principal: daily(rows(6)), ..Limits::default() });
    let (ann, bob) = (of("ann", None), of("bob", None));
    for _ in 0..2 {
        assert_eq!(node.ask(&ann, "rows").await, "text ok\ndone {}");
    }
    insta::assert_snapshot!(
        node.ask(&ann, "rows").await,
        @"refused rate_limited: your rows of today are used up, of which there are 6; they begin anew at 00:00 UTC"
    );
    let refused = node.host.registry.call(called_by(&ann, tool_call("rows"))).unwrap_err();
    assert_eq!(refused.retry_after(), Some(HOUR));
    assert_eq!(node.ask(&bob, "rows").await, "text ok\ndone {}");
    node.advance(HOUR);
    assert_eq!(node.ask(&ann, "rows").await, "text ok\ndone {}");
    assert!(node.host.heard.lines().contains("limit of principal: rows\nrefused tool rows: rate_limited"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_exceeds_the_bytes_of_the_day_ends_in_mid_stream() {
    let bytes = Daily { bytes: Some(55), ..Daily::default() };
    let node = Node::new(Limits { of_principal: daily(bytes), ..Limits::default() });
    let answer = node.ask(&of("ann", None), "endless").await;
    assert_eq!(answer.matches("0123456789").count(), 5, "{answer}");
    assert!(answer.ends_with(
        "failed rate_limited: your bytes of today are used up, of which there are 55; they begin anew at 00:00 UTC"
    ));
    assert!(node.ask(&of("ann", None), "rows").await.starts_with("refused rate_limited: your bytes of today"));
    assert!(node.host.heard.lines().contains("limit of principal: bytes\nended tool endless: rate_limited"));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_calls_is_charged_while_they_run() {
    let time = Daily { time: Some(Duration::from_secs(10)), ..Daily::default() };
    let node = Node::new(Limits { of_principal: daily(time), ..Limits::default() });
    let ann = of("ann", None);
    let work = || node.host.begin(called_by(&ann, tool_call("work")));
    let first = work();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    drop(first);
    settle().await;
    let began = tokio::time::Instant::now();
    let (one, other) = tokio::join!(told(work()), told(work()));
    insta::assert_snapshot!(
        one,
        @"failed rate_limited: your seconds of calls of today are used up, of which there are 10; they begin anew at 00:00 UTC"
    );
    assert!(other.starts_with("failed"), "{other}");
    assert_eq!(began.elapsed().as_secs(), 5, "7.5 s are left for two, and each is charged each second");
    assert!(node.ask(&ann, "rows").await.starts_with("refused rate_limited: your seconds of calls"));
}

#[tokio::test(start_paused = true)]
async fn tenants_tools_and_the_node_have_days_too() {
    let limits = Limits { of_tenant: daily(rows(6)), daily: rows(12), ..Limits::default() };
    let node = Node::new(limits);
    let (ann, bob, cat) = (of("ann", Some("north")), of("bob", Some("north")), of("cat", Some("south")));
    assert_eq!(node.ask(&ann, "rows").await, "text ok\ndone {}");
    assert_eq!(node.ask(&bob, "rows").await, "text ok\ndone {}");
    assert!(node.ask(&ann, "rows").await.starts_with("refused rate_limited: your tenant's rows of today"));
    assert_eq!(node.ask(&cat, "scarce").await, "text ok\ndone {}");
    assert!(node.ask(&cat, "scarce").await.contains("failed rate_limited: this tool's rows of today"));
    assert!(node.ask(&of("eve", None), "rows").await.starts_with("refused rate_limited: the node's rows of today"));
}

#[tokio::test]
async fn a_restart_gives_nobody_a_second_day() {
    let limits = Limits { of_principal: daily(rows(5)), daily: rows(100), ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let (ann, bob, file) = (of("ann", None), of("bob", None), folder.path().join("usage.json"));
    let node = Node::new(limits);
    node.host.registry.keep_usage(file.clone()).unwrap();
    assert_eq!(node.ask(&ann, "rows").await, "text ok\ndone {}");
    node.host.registry.drain(Duration::from_secs(1)).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("ann"), "who calls is nobody's business: {text}");

    let again = Node::at(node.time.clone(), limits);
    again.host.registry.keep_usage(file.clone()).unwrap();
    assert!(again.ask(&ann, "rows").await.contains("failed rate_limited"), "3 of before and 3 of now");
    assert_eq!(again.ask(&bob, "rows").await, "text ok\ndone {}");
    again.host.registry.drain(Duration::from_secs(1)).await;

    let tomorrow = Node::at(node.time.clone(), limits);
    tomorrow.advance(2 * HOUR);
    tomorrow.host.registry.keep_usage(file.clone()).unwrap();
    assert_eq!(tomorrow.ask(&ann, "rows").await, "text ok\ndone {}");
    tomorrow.host.registry.drain(Duration::from_secs(1)).await;

    std::fs::write(&file, "{").unwrap();
    let broken = Node::at(node.time.clone(), limits);
    assert!(broken.host.registry.keep_usage(file.clone()).is_err());
    assert_eq!(broken.ask(&ann, "rows").await, "text ok\ndone {}", "the node goes on all the same");
    broken.host.registry.drain(Duration::from_secs(1)).await;
    assert!(std::fs::read_to_string(&file).unwrap().ends_with('}'), "and writes it anew");
}
