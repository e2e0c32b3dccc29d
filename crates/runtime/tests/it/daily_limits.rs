//! What calls take in a day: charged while they run, refused when it is used up, and kept over a restart.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidegate_core::{
    AuthMethod, CallLimits, Caller, DailyLimits, Error, ErrorKind, Grants, LevelLimits, Limits, Principal,
};
use tidegate_runtime::{
    Answer, Handler, Registry, SnapshotBuilder, Tool,
    event::{EventDispatcher, Subscriber},
    handler_fn,
};

use crate::host::{Host, LOCAL, Recorder, called_by, pass_time, reply_text, run_until_idle, tool_call};

const HOUR: Duration = Duration::from_secs(3_600);

/// A node whose wall clock the test holds; it begins at 23:00 of some day.
struct NodeWithClock {
    host: Host,
    time: Arc<Mutex<SystemTime>>,
}

impl NodeWithClock {
    fn new(limits: Limits) -> Self {
        let time = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + 20_000 * 24 * HOUR + 23 * HOUR));
        Self::at(time, limits)
    }

    fn at(time: Arc<Mutex<SystemTime>>, limits: Limits) -> Self {
        let of_tool = |daily| CallLimits {
            all_callers: LevelLimits { daily, ..LevelLimits::default() },
            ..CallLimits::default()
        };
        let scarce = of_tool(DailyLimits { rows: Some(5), ..DailyLimits::default() });
        let tools = SnapshotBuilder::new()
            .tool(Tool::new("rows", "", row_counting_handler(3)))
            .tool(Tool::new("scarce", "", row_counting_handler(3)).with_limits(scarce))
            .tool(Tool::new("endless", "", streaming()))
            .tool(Tool::new("work", "", working()));
        let received = Arc::new(Recorder::default());
        let events = EventDispatcher::new([received.clone() as Arc<dyn Subscriber>]);
        let clock = time.clone();
        let registry = Registry::with_clock(tools.limits(limits).build(), events, move || *clock.lock());
        Self { host: Host { registry, recorder: received }, time }
    }

    fn advance(&self, time: Duration) {
        *self.time.lock() += time;
    }

    async fn ask(&self, caller: &Caller, tool: &str) -> String {
        self.host.call_to_text(called_by(caller, tool_call(tool))).await
    }
}

fn row_counting_handler(rows: u64) -> Arc<dyn Handler> {
    handler_fn(move |call| async move {
        call.usage().count_rows(rows);
        Ok(Answer::text("ok"))
    })
}

/// Works until it is stopped.
fn working() -> Arc<dyn Handler> {
    handler_fn(|call| async move {
        call.cancelled().await;
        Err(Error::new(ErrorKind::Cancelled, "stopped"))
    })
}

/// Ten bytes after the other.
fn streaming() -> Arc<dyn Handler> {
    handler_fn(|_| async {
        Ok(Answer::written(|reply| async move {
            loop {
                reply.send_text("0123456789").await?;
            }
        }))
    })
}

fn key_caller(subject: &str, tenant: Option<&str>) -> Caller {
    let principal = Principal::new(subject, AuthMethod::Key, Arc::new(Grants::everything()));
    Caller::new(Arc::new(Principal { tenant: tenant.map(str::to_owned), ..principal }), LOCAL)
}

fn daily(daily: DailyLimits) -> LevelLimits {
    LevelLimits { daily, ..LevelLimits::default() }
}

fn daily_rows(rows: u64) -> DailyLimits {
    DailyLimits { rows: Some(rows), ..DailyLimits::default() }
}

#[tokio::test(start_paused = true)]
async fn daily_rows_reset_at_midnight() {
    let node = NodeWithClock::new(Limits { per_principal: daily(daily_rows(6)), ..Limits::default() });
    let (ann, bob) = (key_caller("ann", None), key_caller("bob", None));
    for _ in 0..2 {
        assert_eq!(node.ask(&ann, "rows").await, "block ok\ndone {}");
    }
    insta::assert_snapshot!(
        node.ask(&ann, "rows").await,
        @"refused rate_limited: your daily limit of 6 rows is used up; it resets at 00:00 UTC"
    );
    let refused = node.host.registry.call(called_by(&ann, tool_call("rows"))).unwrap_err();
    assert_eq!(refused.retry_after(), Some(HOUR));
    assert_eq!(node.ask(&bob, "rows").await, "block ok\ndone {}");
    node.advance(HOUR);
    assert_eq!(node.ask(&ann, "rows").await, "block ok\ndone {}");
    assert!(node.host.recorder.lines().contains("limit of principal: rows\nrefused tool rows: rate_limited"));
}

#[tokio::test(start_paused = true)]
async fn exceeding_daily_bytes_ends_stream() {
    let bytes = DailyLimits { bytes: Some(55), ..DailyLimits::default() };
    let node = NodeWithClock::new(Limits { per_principal: daily(bytes), ..Limits::default() });
    let answer = node.ask(&key_caller("ann", None), "endless").await;
    assert_eq!(answer.matches("0123456789").count(), 5, "{answer}");
    assert!(answer.ends_with("failed rate_limited: your daily limit of 55 bytes is used up; it resets at 00:00 UTC"));
    assert!(
        node.ask(&key_caller("ann", None), "rows")
            .await
            .starts_with("refused rate_limited: your daily limit of 55 bytes")
    );
    assert!(node.host.recorder.lines().contains("limit of principal: bytes\nended tool endless: rate_limited"));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_calls_is_charged_while_they_run() {
    let time = DailyLimits { time: Some(Duration::from_secs(10)), ..DailyLimits::default() };
    let node = NodeWithClock::new(Limits { per_principal: daily(time), ..Limits::default() });
    let ann = key_caller("ann", None);
    let work = || node.host.begin(called_by(&ann, tool_call("work")));
    let first = work();
    pass_time(Duration::from_millis(2_500)).await;
    drop(first);
    run_until_idle().await;
    let began = tokio::time::Instant::now();
    let (one, other) = tokio::join!(reply_text(work()), reply_text(work()));
    insta::assert_snapshot!(
        one,
        @"failed rate_limited: your daily limit of 10 seconds of calls is used up; it resets at 00:00 UTC"
    );
    assert!(other.starts_with("failed"), "{other}");
    assert_eq!(began.elapsed().as_secs(), 5, "7.5 s are left for two, and each is charged each second");
    assert!(node.ask(&ann, "rows").await.starts_with("refused rate_limited: your daily limit of 10 seconds"));
}

#[tokio::test(start_paused = true)]
async fn tenant_tool_and_node_have_daily_limits() {
    let limits = Limits { per_tenant: daily(daily_rows(6)), daily: daily_rows(12), ..Limits::default() };
    let node = NodeWithClock::new(limits);
    let (ann, bob, cat) =
        (key_caller("ann", Some("north")), key_caller("bob", Some("north")), key_caller("cat", Some("south")));
    assert_eq!(node.ask(&ann, "rows").await, "block ok\ndone {}");
    assert_eq!(node.ask(&bob, "rows").await, "block ok\ndone {}");
    assert!(node.ask(&ann, "rows").await.starts_with("refused rate_limited: your tenant's daily limit of 6 rows"));
    assert_eq!(node.ask(&cat, "scarce").await, "block ok\ndone {}");
    assert!(node.ask(&cat, "scarce").await.contains("failed rate_limited: this tool's daily limit of 5 rows"));
    assert!(
        node.ask(&key_caller("eve", None), "rows")
            .await
            .starts_with("refused rate_limited: the node's daily limit of 12 rows")
    );
}

#[tokio::test]
async fn usage_survives_restart() {
    let limits = Limits { per_principal: daily(daily_rows(5)), daily: daily_rows(100), ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let (ann, bob, file) = (key_caller("ann", None), key_caller("bob", None), folder.path().join("usage.json"));
    let node = NodeWithClock::new(limits);
    node.host.registry.persist_usage(file.clone()).unwrap();
    assert_eq!(node.ask(&ann, "rows").await, "block ok\ndone {}");
    node.host.registry.drain(Duration::from_secs(1)).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("ann"), "who calls is nobody's business: {text}");

    let node_with_clock = NodeWithClock::at(node.time.clone(), limits);
    node_with_clock.host.registry.persist_usage(file.clone()).unwrap();
    assert!(node_with_clock.ask(&ann, "rows").await.contains("failed rate_limited"), "3 of before and 3 of now");
    assert_eq!(node_with_clock.ask(&bob, "rows").await, "block ok\ndone {}");
    node_with_clock.host.registry.drain(Duration::from_secs(1)).await;

    let tomorrow = NodeWithClock::at(node.time.clone(), limits);
    tomorrow.advance(2 * HOUR);
    tomorrow.host.registry.persist_usage(file.clone()).unwrap();
    assert_eq!(tomorrow.ask(&ann, "rows").await, "block ok\ndone {}");
    tomorrow.host.registry.drain(Duration::from_secs(1)).await;

    std::fs::write(&file, "{").unwrap();
    let broken = NodeWithClock::at(node.time.clone(), limits);
    assert!(broken.host.registry.persist_usage(file.clone()).is_err());
    assert_eq!(broken.ask(&ann, "rows").await, "block ok\ndone {}", "the node goes on all the same");
    broken.host.registry.drain(Duration::from_secs(1)).await;
    assert!(std::fs::read_to_string(&file).unwrap().ends_with('}'), "and writes it anew");
}
