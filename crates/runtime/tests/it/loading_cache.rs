//! What is prepared once for many callers.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{CacheAges, LoadingCache};
use tokio::time::{advance, sleep};

const AGES: CacheAges = CacheAges {
    refresh_after: Duration::from_secs(10),
    expire_after: Duration::from_secs(60),
    load_timeout: Duration::from_secs(5),
    keys_max: NonZeroUsize::MIN,
};

/// A source whose values are the numbers of its loads, each of which takes a second.
#[derive(Clone, Default)]
struct Source(Arc<AtomicU32>);

impl Source {
    async fn load(self) -> Result<u32, Error> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        sleep(Duration::from_secs(1)).await;
        Ok(number)
    }

    fn loads(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

async fn get(cache: &LoadingCache<&'static str, u32>, source: &Source) -> u32 {
    *cache.get(&"key", || source.clone().load()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn callers_that_leave_neither_end_nor_repeat_a_load() {
    let (cache, source) = (LoadingCache::new(AGES), Source::default());
    for _ in 0..20 {
        let leaving = futures::future::join_all((0..50).map(|_| get(&cache, &source)));
        assert!(tokio::time::timeout(Duration::from_millis(10), leaving).await.is_err());
    }
    assert_eq!((get(&cache, &source).await, source.loads()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_old_value_serves_while_a_new_one_is_loaded_and_an_expired_one_does_not() {
    let (cache, source) = (LoadingCache::new(AGES), Source::default());
    assert_eq!(get(&cache, &source).await, 1);
    advance(AGES.refresh_after).await;
    for _ in 0..10 {
        assert_eq!(get(&cache, &source).await, 1);
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!((get(&cache, &source).await, source.loads()), (2, 2));
    advance(AGES.expire_after).await;
    assert_eq!((get(&cache, &source).await, source.loads()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_peek_never_waits() {
    let (cache, source) = (LoadingCache::new(AGES), Source::default());
    let peek = || cache.peek(&"key", || source.clone().load());
    assert_eq!((peek(), peek()), (None, None));
    sleep(Duration::from_secs(2)).await;
    assert_eq!((peek().as_deref(), source.loads()), (Some(&1), 1));
    advance(AGES.expire_after).await;
    assert_eq!(peek(), None);
    sleep(Duration::from_secs(2)).await;
    assert_eq!((peek().as_deref(), source.loads()), (Some(&2), 2));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_not_kept_and_leaves_an_old_value() {
    let cache: LoadingCache<&str, u32> = LoadingCache::new(AGES);
    let fail = || async { Err(Error::new(ErrorKind::Unavailable, "away")) };
    assert_eq!(cache.get(&"key", fail).await.unwrap_err().message(), "away");
    let source = Source::default();
    assert_eq!(get(&cache, &source).await, 1);
    advance(AGES.refresh_after).await;
    assert_eq!(*cache.get(&"key", fail).await.unwrap(), 1);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(get(&cache, &source).await, 1);
}

#[tokio::test(start_paused = true)]
async fn endless_loads_and_panics_are_errors() {
    let cache: LoadingCache<&str, u32> = LoadingCache::new(AGES);
    let endless = cache.get(&"endless", std::future::pending).await;
    insta::assert_snapshot!(endless.unwrap_err().to_string(), @r"
    what the call needs was not ready within 5 s
    Try again later.
    ");
    let panicking = cache.get(&"panicking", || async { panic!("a bug") }).await;
    assert_eq!(panicking.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(*cache.get(&"other", || async { Ok(1) }).await.unwrap(), 1);
}
