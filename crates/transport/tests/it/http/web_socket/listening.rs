//! `subscriptions/listen` concurrent with other requests, and resource notifications of a legacy session.

use serde_json::Value;
use tidegate_mcp::Revision;

use super::super::shared_connection::{self, SharedConnectionClient};
use super::{Server, Socket};
use tidegate_testkit::message_checker::MessageChecker;

impl SharedConnectionClient for Socket {
    async fn open(server: &Server, headers: &[(&str, &str)]) -> Self {
        Self::at(server, "/mcp/ws", headers).await
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

    async fn receive(&mut self) -> Value {
        Self::hear(self).await.unwrap()
    }

    async fn assert_alive(&mut self) {
        Self::lives(self).await;
    }

    async fn assert_disconnected(&mut self) {
        assert_eq!(self.closed().await.0, 1008);
    }

    fn ledger(&mut self) -> &mut MessageChecker {
        &mut self.ledger
    }
}

#[tokio::test]
async fn delivers_subscriptions_until_cancelled_or_shutdown() {
    shared_connection::tell_each_stream::<Socket>().await;
}

#[tokio::test]
async fn subscriptions_have_their_own_bound() {
    shared_connection::bound_streams::<Socket>().await;
}

#[tokio::test]
async fn revoked_key_receives_nothing() {
    shared_connection::revoke::<Socket>().await;
}

#[tokio::test]
async fn legacy_session_receives_only_the_changed_resource() {
    shared_connection::tell_a_session::<Socket>().await;
}
