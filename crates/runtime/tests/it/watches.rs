//! Listeners are notified of changes only, and version tags are polled only while there are listeners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use proptest::prelude::*;
use tidegate_core::{
    Access, AuthMethod, Caller, Error, ErrorKind, Grants, Limits, Principal, TemplateVariables, UriTemplate,
};
use tidegate_runtime::{
    ChangeListener, Resource, ResourceTemplate, ResourceWatcher, Snapshot, SnapshotBuilder, WatchEvent,
};
use tokio::time::{Instant, timeout};

use crate::host::{Host, LOCAL, caller_with_access, pass_time, process_user, run_until_idle, text_handler};

/// A version of each resource, which tests increment.
#[derive(Default)]
struct CountingWatcher {
    versions: Mutex<BTreeMap<String, u64>>,
    requested: AtomicUsize,
    /// The number of running polls, and its maximum.
    at_once: AtomicUsize,
    at_once_max: AtomicUsize,
    /// The number of slow polls that were started for each tenant.
    stuck_for: Mutex<BTreeMap<Option<String>, usize>>,
}

impl CountingWatcher {
    fn change(&self, name: &str) {
        *self.versions.lock().entry(name.to_owned()).or_default() += 1;
    }

    /// The number of polls since the last call of this function.
    fn take_version_tag_count(&self) -> usize {
        self.requested.swap(0, Ordering::SeqCst)
    }
}

#[async_trait]
impl ResourceWatcher for CountingWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        self.requested.fetch_add(1, Ordering::SeqCst);
        let name = &variables["name"];
        match name.as_str() {
            "gone" => return Ok(None),
            "broken" => panic!("as asked"),
            name if name.starts_with("stuck") => {
                let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
                self.at_once_max.fetch_max(at_once, Ordering::SeqCst);
                *self.stuck_for.lock().entry(caller.principal.tenant.clone()).or_default() += 1;
                // Simulates a slow watcher: ten seconds are longer than a version tag may take.
                let _ = timeout(Duration::from_secs(10), std::future::pending::<()>()).await;
            }
            _ => {}
        }
        Ok(Some(self.versions.lock().get(name).copied().unwrap_or_default().to_string()))
    }
}

/// `thing://` and a name, with a watcher; `plain://` without one.
fn entries(watcher: &Arc<CountingWatcher>, access: &Access) -> Snapshot {
    entries_within(watcher, access, Limits::default())
}

fn entries_within(watcher: &Arc<CountingWatcher>, access: &Access, limits: Limits) -> Snapshot {
    let template = UriTemplate::parse("thing://{name}").unwrap();
    let mut things = ResourceTemplate::new(template, "things", text_handler("x"));
    things.watcher = Some(watcher.clone());
    things.access = access.clone();
    let plain = Resource::new("plain://", "plain", text_handler("x"));
    SnapshotBuilder::new().template(things).resource(plain).limits(limits).build()
}

fn host() -> (Host, Arc<CountingWatcher>) {
    let (host, watcher) = (Host::new(SnapshotBuilder::new()), Arc::new(CountingWatcher::default()));
    host.registry.swap(entries(&watcher, &Access::default()));
    (host, watcher)
}

async fn watch_uris(host: &Host, caller: &Caller, uris: &[&str]) -> ChangeListener {
    let watch = host.registry.watch();
    for uri in uris {
        watch.subscribe(uri, caller).unwrap();
    }
    watch.wait_for_baseline().await;
    watch
}

/// The changes that the listener receives until there are none for a while.
async fn collect_changes(watch: &ChangeListener, caller: &Caller) -> String {
    let mut received = Vec::new();
    while timeout(Duration::from_secs(7), watch.changed()).await.is_ok() {
        watch.update_caller(caller).await;
        while let Some(change) = watch.next_change() {
            received.push(match change {
                WatchEvent::Registry => "registry".to_owned(),
                WatchEvent::Resource(uri) => uri.to_string(),
            });
        }
    }
    received.join(" ")
}

#[tokio::test(start_paused = true)]
async fn each_change_is_reported_once() {
    let (host, watcher) = host();
    let watch = watch_uris(&host, &process_user(), &["thing://a", "thing://b", "thing://gone", "plain://"]).await;
    assert_eq!(collect_changes(&watch, &process_user()).await, "");
    for name in ["a", "a", "other"] {
        watcher.change(name);
    }
    assert_eq!(collect_changes(&watch, &process_user()).await, "thing://a");
    watch.unsubscribe("thing://a");
    watcher.change("a");
    watcher.change("b");
    assert_eq!(collect_changes(&watch, &process_user()).await, "thing://b");
}

#[tokio::test(start_paused = true)]
async fn early_change_is_reported_within_a_second() {
    let (host, watcher) = host();
    let watch = watch_uris(&host, &process_user(), &["thing://a"]).await;
    let began = Instant::now();
    watcher.change("a");
    watch.changed().await;
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn swap_marks_everything_changed() {
    let (host, watcher) = host();
    let watch = watch_uris(&host, &process_user(), &["thing://a", "plain://", "thing://stuck"]).await;
    host.registry.swap(entries(&watcher, &Access::default()));
    assert_eq!(watch.next_change(), None, "the caller must be updated first");
    assert_eq!(collect_changes(&watch, &process_user()).await, "registry plain:// thing://a thing://stuck");
    watcher.change("a");
    assert_eq!(collect_changes(&watch, &process_user()).await, "thing://a", "of the new state");
    assert_eq!(watch.version(), 3);
}

#[tokio::test(start_paused = true)]
async fn version_tags_are_polled_once_per_caller_while_watched() {
    let (host, watcher) = host();
    run_until_idle().await;
    assert_eq!(watcher.take_version_tag_count(), 0);
    // Two callers with the same identity and rights count as one.
    let callers = [caller_with_access("ann", &[]), caller_with_access("ann", &[]), caller_with_access("bob", &[])];
    let mut watches = Vec::new();
    for caller in &callers {
        watches.push(watch_uris(&host, caller, &["thing://a", "plain://"]).await);
    }
    watcher.take_version_tag_count();
    pass_time(Duration::from_secs(10)).await;
    let requested = watcher.take_version_tag_count();
    assert!((36..=44).contains(&requested), "two are asked for twice a second: {requested}");
    drop(watches);
    pass_time(Duration::from_secs(1)).await;
    watcher.take_version_tag_count();
    pass_time(Duration::from_secs(60)).await;
    assert_eq!(watcher.take_version_tag_count(), 0);
    // Later listeners are notified, too.
    let watch = watch_uris(&host, &process_user(), &["thing://a"]).await;
    watcher.change("a");
    assert_eq!(collect_changes(&watch, &process_user()).await, "thing://a");
}

#[tokio::test(start_paused = true)]
async fn failing_watcher_does_not_block_others() {
    let (host, watcher) = host();
    let stuck: Vec<String> = (0..7).map(|number| format!("thing://stuck{number}")).collect();
    let stuck: Vec<&str> = stuck.iter().map(String::as_str).collect();
    let watch = watch_uris(&host, &process_user(), &[&["thing://broken", "thing://a"], &stuck[..]].concat()).await;
    let began = Instant::now();
    watcher.change("a");
    watch.changed().await;
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(collect_changes(&watch, &process_user()).await, "thing://a");
    let faults = host.recorder.lines().matches("panicked: as asked").count();
    assert_eq!(faults, 1, "the fault is logged once");
}

#[tokio::test(start_paused = true)]
async fn concurrent_polls_are_bounded() {
    let (host, watcher) = host();
    let watch = host.registry.watch();
    for number in 0..100 {
        watch.subscribe(&format!("thing://stuck{number}"), &process_user()).unwrap();
    }
    watch.wait_for_baseline().await;
    assert_eq!(watcher.at_once_max.load(Ordering::SeqCst), 8);
}

#[tokio::test(start_paused = true)]
async fn slow_tenant_does_not_block_others() {
    let (host, watcher) = host();
    let of = |tenant: &str, name: &str| {
        let principal = Principal::new(name, AuthMethod::Token, Arc::new(Grants::everything()));
        Caller::new(Arc::new(Principal { tenant: Some(tenant.to_owned()), ..principal }), LOCAL)
    };
    let (ann, bob) = (of("north", "ann"), of("south", "bob"));
    let slow = host.registry.watch();
    for number in 0..100 {
        slow.subscribe(&format!("thing://stuck{number}"), &ann).unwrap();
    }
    slow.wait_for_baseline().await;
    assert_eq!(watcher.at_once_max.load(Ordering::SeqCst), 4);
    let watch = watch_uris(&host, &bob, &["thing://a"]).await;
    let began = Instant::now();
    watcher.change("a");
    watch.changed().await;
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(collect_changes(&watch, &bob).await, "thing://a");
    // Polls that waited are made, and polls of ended listeners take no permits of others.
    let watch = watch_uris(&host, &ann, &["thing://b"]).await;
    drop(slow);
    assert_eq!(collect_changes(&watch, &ann).await, "thing://b", "the first version tag came after the baseline");
    watcher.change("b");
    assert_eq!(collect_changes(&watch, &ann).await, "thing://b");
}

#[tokio::test(start_paused = true)]
async fn slow_tenants_do_not_block_each_other() {
    let (host, watcher) = host();
    let of = |tenant: Option<&str>, name: &str| {
        let principal = Principal::new(name, AuthMethod::Token, Arc::new(Grants::everything()));
        Caller::new(Arc::new(Principal { tenant: tenant.map(str::to_owned), ..principal }), LOCAL)
    };
    let mut slow = Vec::new();
    for tenant in ["east", "north", "south"] {
        let watch = host.registry.watch();
        for number in 0..100 {
            watch.subscribe(&format!("thing://stuck{number}"), &of(Some(tenant), tenant)).unwrap();
        }
        watch.wait_for_baseline().await;
        slow.push(watch);
    }
    watcher.stuck_for.lock().clear();
    pass_time(Duration::from_secs(60)).await;
    // Eight at once, of which each takes five seconds.
    let stuck_for = watcher.stuck_for.lock().clone();
    assert_eq!(stuck_for.len(), 3, "{stuck_for:?}");
    assert!(stuck_for.values().all(|count| (28..=36).contains(count)), "{stuck_for:?}");
    for caller in [of(Some("west"), "bob"), of(None, "carol")] {
        let watch = watch_uris(&host, &caller, &["thing://a", "thing://b"]).await;
        collect_changes(&watch, &caller).await;
        let began = Instant::now();
        watcher.change("a");
        watch.changed().await;
        // The first of the slow polls ends within this time.
        assert!(began.elapsed() <= Duration::from_secs(6), "{:?}", began.elapsed());
        assert_eq!(collect_changes(&watch, &caller).await, "thing://a");
    }
}

#[tokio::test(start_paused = true)]
async fn revoked_listener_gets_no_changes() {
    let (host, watcher) = host();
    let (ann, bob) = (caller_with_access("ann", &["secrets"]), caller_with_access("bob", &[]));
    let of_ann = watch_uris(&host, &ann, &["thing://a"]).await;
    let of_bob = watch_uris(&host, &bob, &["thing://a"]).await;
    let secret = Access { names: vec!["secrets".to_owned()], ..Access::default() };
    host.registry.swap(entries(&watcher, &secret));
    assert_eq!(collect_changes(&of_ann, &ann).await, "registry thing://a");
    assert_eq!(collect_changes(&of_bob, &bob).await, "registry");
    watcher.change("a");
    assert_eq!(collect_changes(&of_ann, &ann).await, "thing://a");
    assert_eq!(collect_changes(&of_bob, &bob).await, "");
    // The rights of a caller can change while the registry stays the same.
    watcher.change("a");
    assert_eq!(collect_changes(&of_ann, &caller_with_access("ann", &[])).await, "");
    host.registry.swap(entries(&watcher, &Access::default()));
    assert_eq!(
        collect_changes(&of_bob, &bob).await,
        "registry thing://a",
        "a resource that is visible again is reported"
    );
    let error = of_bob.subscribe("thing://", &bob).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn stale_principals_are_not_polled() {
    let (host, watcher) = host();
    let watch = watch_uris(&host, &process_user(), &["thing://a"]).await;
    let later = SnapshotBuilder::new().generation(1).build();
    host.registry.swap(later);
    pass_time(Duration::from_secs(1)).await;
    watcher.take_version_tag_count();
    pass_time(Duration::from_secs(10)).await;
    assert_eq!(watcher.take_version_tag_count(), 0, "the old watcher is dropped");
    assert_eq!(collect_changes(&watch, &process_user()).await, "registry");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_bounded() {
    let (host, _) = host();
    let with_key = |name: &str| {
        Caller::new(Arc::new(Principal::new(name, AuthMethod::Key, Arc::new(Grants::everything()))), LOCAL)
    };
    let fill = |caller: &Caller| {
        let watch = host.registry.watch();
        let refused = (0..).find_map(|number| watch.subscribe(&format!("thing://{number}"), caller).err());
        (watch, refused.unwrap())
    };
    let (first, refused) = fill(&with_key("ann"));
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert_eq!(refused.to_string(), "too many resource subscriptions; at most 1000 at once");
    assert!(first.subscribe("thing://7", &with_key("ann")).is_ok(), "it is subscribed to already");
    let (_second, _) = fill(&with_key("ann"));
    let (third, refused) = fill(&with_key("ann"));
    assert_eq!(refused.kind(), ErrorKind::RateLimited, "one principal has a quarter");
    assert!(third.subscribe("thing://500", &with_key("ann")).is_err());
    first.unsubscribe("thing://7");
    assert!(third.subscribe("thing://500", &with_key("ann")).is_ok());
    let mut others = Vec::new();
    let refused = loop {
        let (watch, refused) = fill(&process_user());
        others.push(watch);
        if refused.kind() != ErrorKind::TooLarge {
            break refused;
        }
    };
    assert_eq!((refused.kind(), others.len()), (ErrorKind::RateLimited, 8));
    others.pop();
    assert!(
        fill(&with_key("bob")).0.subscribe("thing://0", &with_key("bob")).is_ok(),
        "released subscriptions are free"
    );
}

#[tokio::test(start_paused = true)]
async fn tenant_has_half_of_subscriptions() {
    let (host, _) = host();
    let of = |tenant: &str, name: &str| {
        let principal = Principal::new(name, AuthMethod::Token, Arc::new(Grants::everything()));
        Caller::new(Arc::new(Principal { tenant: Some(tenant.to_owned()), ..principal }), LOCAL)
    };
    let mut watches = Vec::new();
    // The number of subscriptions, and the error after them.
    let mut fill = |caller: &Caller| {
        let mut count = 0;
        loop {
            let watch = host.registry.watch();
            let refused = (0..).find_map(|number| {
                let refused = watch.subscribe(&format!("thing://{number}"), caller).err();
                count += usize::from(refused.is_none());
                refused
            });
            watches.push(watch);
            let refused = refused.unwrap();
            if refused.kind() != ErrorKind::TooLarge {
                return (count, refused.to_string());
            }
        }
    };
    let message = |owner_key: &str| format!("too many resource subscriptions{owner_key}; try again later");
    for name in ["ann", "bob"] {
        assert_eq!(fill(&of("north", name)), (2_500, message(" by you")));
    }
    assert_eq!(fill(&of("north", "carol")), (0, message(" by your tenant")));
    assert_eq!(fill(&of("south", "ann")), (2_500, message(" by you")));
    assert_eq!(fill(&of("west", "ann")), (2_500, message(" by you")));
    assert_eq!(fill(&of("west", "bob")), (0, message("")));
    watches.remove(0);
    let watch = host.registry.watch();
    assert!(
        watch.subscribe("thing://0", &of("north", "carol")).is_ok(),
        "released subscriptions are the tenant's again"
    );
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_have_separate_subscription_shares() {
    let (host, watcher) = host();
    let mut peer = LOCAL;
    peer.peer = Some("192.0.2.1".parse().unwrap());
    let nobody = Caller::new(Principal::anonymous(), peer);
    let fill = || {
        let watches: Vec<ChangeListener> = (0..4).map(|_| host.registry.watch()).collect();
        let tried = watches.iter().flat_map(|watch| (0..1_000).map(move |number| (watch, format!("thing://{number}"))));
        let count = tried.filter(|(watch, uri)| watch.subscribe(uri, &nobody).is_ok()).count();
        (count, watches)
    };
    assert_eq!(fill().0, 4_000);
    let limits = Limits::default().with_default_shares();
    host.registry.swap(entries_within(&watcher, &Access::default(), limits));
    let (count, _watches) = fill();
    assert_eq!(count, 2_500);
    let mut another = peer;
    another.peer = Some("192.0.2.2".parse().unwrap());
    let another = Caller::new(Principal::anonymous(), another);
    assert!(host.registry.watch().subscribe("thing://0", &another).is_ok());
}

#[tokio::test(start_paused = true)]
async fn drain_stops_polling() {
    let (host, watcher) = host();
    let _watch = watch_uris(&host, &process_user(), &["thing://a", "thing://stuck"]).await;
    host.registry.drain(Duration::ZERO).await;
    watcher.take_version_tag_count();
    pass_time(Duration::from_secs(60)).await;
    assert_eq!(watcher.take_version_tag_count(), 0);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum WatchStep {
    Change(u8),
    Swap,
    Subscribe(u8),
    Unsubscribe(u8),
    Read(u8),
    Wait(u16),
}

fn steps() -> impl Strategy<Value = Vec<WatchStep>> {
    let step = prop_oneof![
        4 => (0..6_u8).prop_map(WatchStep::Change),
        1 => Just(WatchStep::Swap),
        2 => (0..6_u8).prop_map(WatchStep::Subscribe),
        1 => (0..6_u8).prop_map(WatchStep::Unsubscribe),
        2 => (1..4_u8).prop_map(WatchStep::Read),
        3 => (0..900_u16).prop_map(WatchStep::Wait),
    ];
    proptest::collection::vec(step, 1..40)
}

/// A listener and what must hold of it.
#[derive(Default)]
struct Model {
    subscribed: BTreeSet<u8>,
    /// Changed since the subscription or the last notification; a notification must follow.
    owed: BTreeSet<u8>,
    /// Changed at any time since the subscription; a notification may follow.
    possible: BTreeSet<u8>,
    /// A swap that is not read yet counts for what is subscribed to after it, too.
    has_swap: bool,
}

impl Model {
    fn change(&mut self, number: u8) {
        if self.subscribed.contains(&number) {
            self.owed.insert(number);
            self.possible.insert(number);
        }
    }

    fn on_change(&mut self, change: &WatchEvent) {
        let WatchEvent::Resource(uri) = change else { return };
        let number = uri.strip_prefix("thing://").unwrap().parse().unwrap();
        assert!(self.possible.contains(&number), "{uri} did not change");
        self.owed.remove(&number);
    }
}

async fn run_steps(steps: Vec<WatchStep>) {
    let (host, watcher) = host();
    let watch = host.registry.watch();
    let mut model = Model::default();
    for step in steps {
        match step {
            WatchStep::Change(number) => {
                watcher.change(&number.to_string());
                model.change(number);
            }
            WatchStep::Swap => {
                host.registry.swap(entries(&watcher, &Access::default()));
                model.has_swap = true;
                model.subscribed.clone().into_iter().for_each(|number| model.change(number));
            }
            WatchStep::Subscribe(number) => {
                watch.subscribe(&format!("thing://{number}"), &process_user()).unwrap();
                watch.wait_for_baseline().await;
                model.subscribed.insert(number);
                model.possible.extend(model.has_swap.then_some(number));
            }
            WatchStep::Unsubscribe(number) => {
                watch.unsubscribe(&format!("thing://{number}"));
                for numbers in [&mut model.subscribed, &mut model.owed, &mut model.possible] {
                    numbers.remove(&number);
                }
            }
            WatchStep::Read(count) => {
                model.has_swap = false;
                watch.update_caller(&process_user()).await;
                (0..count).map_while(|_| watch.next_change()).for_each(|change| model.on_change(&change));
            }
            WatchStep::Wait(milliseconds) => pass_time(Duration::from_millis(milliseconds.into())).await,
        }
    }
    while timeout(Duration::from_secs(2), watch.changed()).await.is_ok() {
        watch.update_caller(&process_user()).await;
        std::iter::from_fn(|| watch.next_change()).for_each(|change| model.on_change(&change));
    }
    assert!(model.owed.is_empty(), "not reported: {:?}", model.owed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reports_exactly_the_changes_in_any_order(steps in steps()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run_steps(steps));
    }
}
