//! The engine of PostgreSQL: rows streamed into Arrow behind three walls.

pub mod connect;
