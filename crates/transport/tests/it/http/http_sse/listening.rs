//! `subscriptions/listen` beside other requests, and what a legacy session hears of its resources.

use serde_json::Value;
use tidegate_mcp::Revision;

use super::super::sharing::{self, Shared};
use super::{Server, Stream};
use crate::ledger::Ledger;

impl Shared for Stream {
    async fn open(server: &Server, headers: &[(&str, &str)]) -> Self {
        Self::at(server, "/mcp/sse", headers).await
    }

    async fn agreed(server: &Server, revision: Revision) -> Self {
        Self::agreed(server, revision).await
    }

    async fn say(&mut self, text: &str) {
        Self::say(self, text).await;
    }

    async fn send(&mut self, id: Value, method: &str, params: Value) {
        Self::send(self, id, method, params).await;
    }

    async fn call(&mut self, id: Value, steps: Value) {
        Self::call(self, id, steps).await;
    }

    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        Self::ask(self, id, method, params).await
    }

    async fn hear(&mut self) -> Value {
        Self::hear(self).await.unwrap()
    }

    async fn lives(&mut self) {
        Self::lives(self).await;
    }

    async fn is_let_go(&mut self) {
        assert!(Self::hear(self).await.is_none(), "the stream ends without a result");
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

#[tokio::test]
async fn each_stream_tells_what_it_was_asked_for_until_it_is_cancelled_or_the_server_shuts_down() {
    sharing::tell_each_stream::<Stream>().await;
}

#[tokio::test]
async fn streams_are_bounded_and_take_no_place_of_requests() {
    sharing::bound_streams::<Stream>().await;
}

#[tokio::test]
async fn a_key_that_is_revoked_hears_nothing_more() {
    sharing::revoke::<Stream>().await;
}

#[tokio::test]
async fn a_legacy_session_hears_of_the_resource_that_changed_alone() {
    sharing::tell_a_session::<Stream>().await;
}
