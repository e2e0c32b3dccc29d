//! Links: each has the rights of its creator at its creation, whatever links exist before or after it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_core::{AuthMethod, Caller, LinkVerifier, Principal};
use tidegate_query::result_manifest;
use tidegate_results::StoredResult;

use super::{TestStore, ann, bob, small_limits};

/// `caller`, admitted by the authenticator of this number.
fn by_authenticator(authenticator: u64, caller: Caller) -> Caller {
    let principal = Principal { authenticator_version: authenticator, ..(*caller.principal).clone() };
    Caller { principal: Arc::new(principal), ..caller }
}

/// `caller` with a role.
fn with_role(role: &str, caller: Caller) -> Caller {
    let principal = Principal { roles: [role.to_owned()].into(), ..(*caller.principal).clone() };
    Caller { principal: Arc::new(principal), ..caller }
}

/// Which authenticator admitted the caller that `link` speaks for; none if it opens nothing.
fn authenticator_generation(spool: &TestStore, result: &StoredResult, link: &str) -> Option<u64> {
    spool.store.verify_link(&result.header().id.to_string(), link).map(|caller| caller.principal.authenticator_version)
}

#[tokio::test]
async fn link_keeps_its_makers_rights() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    let link_of = |authenticator: u64| spool.store.create_link(&result, &by_authenticator(authenticator, ann())).0;
    let links = [(1, link_of(1)), (2, link_of(2)), (1, link_of(1)), (3, link_of(3)), (2, link_of(2))];
    for (authenticator, link) in &links {
        assert_eq!(authenticator_generation(&spool, &result, link), Some(*authenticator), "neither revived nor killed");
    }
    // Nor does it get the rights of somebody of the same name.
    let of = |caller: Caller| spool.store.create_link(&result, &caller).0;
    let (reader, writer) = (of(with_role("reader", ann())), of(with_role("writer", ann())));
    let roles = |link: &str| {
        let opened = spool.store.verify_link(&result.header().id.to_string(), link).unwrap();
        opened.principal.roles.iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!((roles(&reader), roles(&writer)), (vec!["reader".to_owned()], vec!["writer".to_owned()]));
}

#[tokio::test]
async fn link_expires_with_process() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    let (old, _) = spool.store.create_link(&result, &ann());
    // Gates and generations are counted from the beginning again there.
    let spool = spool.reopen(small_limits()).await;
    let result = spool.store.get(result.header().id, &ann()).unwrap();
    let (fresh, _) = spool.store.create_link(&result, &ann());
    assert_eq!(
        (authenticator_generation(&spool, &result, &old), authenticator_generation(&spool, &result, &fresh)),
        (None, Some(0))
    );
}

#[tokio::test]
async fn evicts_links_of_oldest_generation_first() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    let link_of = |authenticator: u64, role: &str| {
        spool.store.create_link(&result, &with_role(role, by_authenticator(authenticator, ann()))).0
    };
    let before = link_of(1, "before");
    let now: Vec<String> = (0..8).map(|index| link_of(2, &index.to_string())).collect();
    // A call that outlived the reading of keys.
    let late = link_of(1, "late");
    let is_good = |link: &String| authenticator_generation(&spool, &result, link).is_some();
    assert!(now.iter().all(is_good) && !is_good(&before) && !is_good(&late));
    // A repeated caller takes no additional place.
    let retried = link_of(2, "0");
    assert!(now.iter().all(is_good) && is_good(&retried));
    let newest = link_of(2, "8");
    assert!(is_good(&newest) && now.iter().filter(|link| is_good(link)).count() == 7);
}

#[tokio::test]
async fn link_authenticates_as_its_maker() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    let id = result.header().id.to_string();
    let nobody = Caller { principal: Principal::anonymous(), ..bob() };
    let makers = [ann(), bob(), nobody];
    let links: Vec<String> = makers.iter().map(|maker| spool.store.create_link(&result, maker).0).collect();
    let proofs = links.iter().map(|link| spool.store.verify_link(&id, link).unwrap().principal.auth_method);
    assert_eq!(
        proofs.collect::<Vec<_>>(),
        [ann().principal.auth_method, bob().principal.auth_method, AuthMethod::Anonymous]
    );
}

#[tokio::test]
async fn link_holder_gets_no_new_links() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    assert!(result_manifest(&spool.store, &result, Some(&ann()))["links"].is_object());
    let by_link = Caller { is_link_only: true, ..ann() };
    assert!(result_manifest(&spool.store, &result, Some(&by_link)).get("links").is_none());
}

#[tokio::test]
async fn a_link_ends_with_the_token_of_its_maker() {
    let spool = TestStore::new(small_limits()).await;
    let result = spool.keep(&ann(), 20).await;
    let good_for = |time: Duration| {
        let good_until = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(result.header().created_at_ms) + time);
        let principal = Arc::new(Principal { expires_at: good_until, ..(*ann().principal).clone() });
        spool.store.create_link(&result, &Caller { principal, ..ann() })
    };
    let (ended, _) = good_for(Duration::ZERO);
    assert_eq!(authenticator_generation(&spool, &result, &ended), None);
    let (good, until) = good_for(Duration::from_secs(60));
    assert_eq!(
        (authenticator_generation(&spool, &result, &good), until),
        (Some(0), result.header().created_at_ms + 60_000)
    );
    let (_, until) = good_for(Duration::from_secs(60 * 60));
    assert!(until < result.header().created_at_ms + 60 * 60 * 1000, "nor does it last longer than links do");
}
