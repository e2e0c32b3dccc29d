//! Messages of an MQTT broker as rows of a table that takes rows.
//!
//! [`MqttReceiver::start`] subscribes to topics and stores what arrives until [`MqttReceiver::stop`].
//!
//! # At least once
//!
//! With [`Delivery::AtLeastOnce`] (QoS 1), a message is acknowledged to the broker after the commit of its rows, never
//! before. The session is persistent, so that the broker keeps messages while the node is not connected. A message whose
//! acknowledgement is lost arrives again, and its rows are stored again: a message of MQTT 3.1.1 has no identity that
//! outlives its delivery, so that the copy cannot be recognised. With [`Delivery::AtMostOnce`] (QoS 0), messages are lost
//! while the node is not connected, and when it stops.
//!
//! # Bounds
//!
//! Messages that are not stored yet are at most [`HELD_MESSAGES_MAX`] or [`HELD_BYTES_MAX`]. Then nothing more is read
//! from the connection, and the broker keeps what follows. Requests to keep the connection alive are still sent.
//!
//! # Why not a library
//!
//! `rumqttc` 0.25 (whose TLS also requires `ring`) and `rumqttc-v4-next` 0.34 read packets and keep the connection alive
//! in one method, `EventLoop::poll`. While nothing can be stored, it reads on, or no ping is sent and the broker ends the
//! session. What it reads then is limited by the broker only: with QoS 1 by its window of messages of up to 256 MiB, with
//! QoS 0 not at all. Their limit for a packet ends the connection, and a persistent session sends the same message again
//! after each connection; here, it is one rejected row. Their codec alone would replace 100 lines, and need three more
//! packages. The tests use `rumqttc` as the publisher, and a real broker.

mod connection;
mod decode;
mod options;
mod packet;
mod receiver;
mod session;
mod store;
mod topic;

pub use options::{
    BrokerAddress, BrokerAddressError, BrokerCredentials, Delivery, MqttOptions, OptionsProblem, TopicColumn,
};
pub use receiver::{MqttCounters, MqttNumbers, MqttReceiver};
pub use session::{HELD_BYTES_MAX, HELD_MESSAGES_MAX};
