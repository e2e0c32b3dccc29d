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
//! One method of the client libraries reads packets and keeps the connection alive (`EventLoop::poll`). While nothing can
//! be stored, they read on, or the broker ends the session. What they read then is limited by the broker only: by its
//! window for QoS 1, with messages of up to 256 MiB, and not at all for QoS 0. A limit of theirs for the size of a packet
//! ends the connection instead of refusing one message. That holds for `rumqttc` 0.25, whose TLS also requires `ring`,
//! and for `rumqttc-v4-next` 0.34, which can do without. A subscriber needs eight kinds of packets. The tests use
//! `rumqttc` as the publisher, and a real broker.

mod address;
mod connection;
mod decode;
mod options;
mod packet;
mod packet_reader;
mod receiver;
mod session;
mod store;
mod topic;
mod writes;

pub use address::{BrokerAddress, BrokerAddressError};
pub use options::{BrokerCredentials, Delivery, MqttOptions, OptionsProblem, TopicColumn};
pub use receiver::{MqttCounters, MqttNumbers, MqttReceiver};
pub use session::{HELD_BYTES_MAX, HELD_MESSAGES_MAX};
