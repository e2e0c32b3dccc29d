//! What the checks of limits cost a request, with a thousand principals known.

#![allow(missing_docs, reason = "criterion's macro has no docs")]

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use tidegate_core::{AuthMethod, CallOrigin, Caller, Grants, LevelLimits, Limits, Principal, RateLimit, TransportKind};
use tidegate_runtime::{Registry, SnapshotBuilder, event::EventDispatcher};

/// Principals of ten tenants, and as many who show nothing but their addresses.
fn callers() -> Vec<Caller> {
    let grants = Arc::new(Grants::everything());
    let with_key = |n: u16| {
        let principal = Principal::new(format!("principal-{n}"), AuthMethod::Key, grants.clone());
        Arc::new(Principal { tenant: Some(format!("tenant-{}", n % 10)), ..principal })
    };
    let at = |n: u16| CallOrigin {
        transport: TransportKind::StreamableHttp,
        peer: Some(IpAddr::from([10, 0, (n >> 8) as u8, n as u8])),
    };
    (0..500).flat_map(|n| [Caller::new(with_key(n), at(n)), Caller::new(Principal::anonymous(), at(n))]).collect()
}

fn admitting(criterion: &mut Criterion) {
    let rate = RateLimit::per_second(1e6, 1_000_000);
    let allowance = LevelLimits { rate, ..LevelLimits::default() };
    let limits = Limits { rate, per_principal: allowance, per_tenant: allowance, ..Limits::default() };
    let registry = Registry::new(SnapshotBuilder::new().limits(limits).build(), EventDispatcher::default());
    let callers = callers();
    let mut next = callers.iter().cycle();
    criterion.bench_function("limits of a request, 1,000 principals", |bencher| {
        bencher.iter(|| black_box(registry.admit_request(next.next().unwrap_or(&callers[0]))));
    });
}

criterion_group!(benches, admitting);
criterion_main!(benches);
