//! Links: each is worth what it was made under, whoever was given one before or after it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_core::{Caller, Links, Principal, Proof};
use tidegate_query::StoredResult;

use super::{Spool, ann, bob, small};

/// `caller`, let in by the gate of this number.
fn by_gate(gate: u64, caller: Caller) -> Caller {
    let principal = Principal { gate, ..(*caller.principal).clone() };
    Caller { principal: Arc::new(principal), ..caller }
}

/// `caller` with a role.
fn with_role(role: &str, caller: Caller) -> Caller {
    let principal = Principal { roles: [role.to_owned()].into(), ..(*caller.principal).clone() };
    Caller { principal: Arc::new(principal), ..caller }
}

/// Which gate let in the caller that `link` speaks for; none if it opens nothing.
fn gate_of(spool: &Spool, result: &StoredResult, link: &str) -> Option<u64> {
    spool.store.opened_by(&result.head().id.to_string(), link).map(|caller| caller.principal.gate)
}

#[tokio::test]
async fn a_link_is_worth_what_it_was_made_under_whoever_is_given_another() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    let link_of = |gate: u64| spool.store.link(&result, &by_gate(gate, ann())).0;
    let links = [(1, link_of(1)), (2, link_of(2)), (1, link_of(1)), (3, link_of(3)), (2, link_of(2))];
    for (gate, link) in &links {
        assert_eq!(gate_of(&spool, &result, link), Some(*gate), "neither revived nor killed");
    }
    // Nor does it get the rights of somebody of the same name.
    let of = |caller: Caller| spool.store.link(&result, &caller).0;
    let (reader, writer) = (of(with_role("reader", ann())), of(with_role("writer", ann())));
    let roles = |link: &str| {
        let opened = spool.store.opened_by(&result.head().id.to_string(), link).unwrap();
        opened.principal.roles.iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!((roles(&reader), roles(&writer)), (vec!["reader".to_owned()], vec!["writer".to_owned()]));
}

#[tokio::test]
async fn a_link_ends_with_its_process_also_when_its_maker_is_given_a_fresh_one() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    let (old, _) = spool.store.link(&result, &ann());
    // Gates and generations are counted from the beginning again there.
    let spool = spool.again(small()).await;
    let result = spool.store.get(result.head().id, &ann()).unwrap();
    let (fresh, _) = spool.store.link(&result, &ann());
    assert_eq!((gate_of(&spool, &result, &old), gate_of(&spool, &result, &fresh)), (None, Some(0)));
}

#[tokio::test]
async fn of_very_many_readers_those_of_the_earliest_gate_lose_their_links_first() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    let link_of = |gate: u64, role: &str| spool.store.link(&result, &with_role(role, by_gate(gate, ann()))).0;
    let before = link_of(1, "before");
    let now: Vec<String> = (0..8).map(|index| link_of(2, &index.to_string())).collect();
    // A call that outlived the reading of keys.
    let late = link_of(1, "late");
    let is_good = |link: &String| gate_of(&spool, &result, link).is_some();
    assert!(now.iter().all(is_good) && !is_good(&before) && !is_good(&late));
    // Whoever comes again is nobody new.
    let again = link_of(2, "0");
    assert!(now.iter().all(is_good) && is_good(&again));
    let newest = link_of(2, "8");
    assert!(is_good(&newest) && now.iter().filter(|link| is_good(link)).count() == 7);
}

#[tokio::test]
async fn links_speak_for_whoever_made_them_where_several_may_read() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    let id = result.head().id.to_string();
    let nobody = Caller { principal: Principal::anonymous(), ..bob() };
    let makers = [ann(), bob(), nobody];
    let links: Vec<String> = makers.iter().map(|maker| spool.store.link(&result, maker).0).collect();
    let proofs = links.iter().map(|link| spool.store.opened_by(&id, link).unwrap().principal.proof);
    assert_eq!(proofs.collect::<Vec<_>>(), [ann().principal.proof, bob().principal.proof, Proof::Anonymous]);
}

#[tokio::test]
async fn who_has_come_by_a_link_is_given_no_other() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    assert!(spool.store.manifest(&result, Some(&ann()))["links"].is_object());
    let by_link = Caller { has_link_alone: true, ..ann() };
    assert!(spool.store.manifest(&result, Some(&by_link)).get("links").is_none());
}

#[tokio::test]
async fn a_link_ends_with_the_token_of_its_maker() {
    let spool = Spool::new(small()).await;
    let result = spool.keep(&ann(), 20).await;
    let good_for = |time: Duration| {
        let good_until = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(result.head().created_at_ms) + time);
        let principal = Arc::new(Principal { good_until, ..(*ann().principal).clone() });
        spool.store.link(&result, &Caller { principal, ..ann() })
    };
    let (ended, _) = good_for(Duration::ZERO);
    assert_eq!(gate_of(&spool, &result, &ended), None);
    let (good, until) = good_for(Duration::from_secs(60));
    assert_eq!((gate_of(&spool, &result, &good), until), (Some(0), result.head().created_at_ms + 60_000));
    let (_, until) = good_for(Duration::from_secs(60 * 60));
    assert!(until < result.head().created_at_ms + 60 * 60 * 1000, "nor does it last longer than links do");
}
