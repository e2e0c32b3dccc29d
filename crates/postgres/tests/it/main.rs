//! What the engine promises, against a real server: `scripts/postgres run -- cargo nextest run -p tidegate-postgres`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers; // Rows, errors, catalogs, plans.
mod background_script; // What holds a server or a pooler for a test.
mod caller_functions; // Which functions of a database the SQL of a caller may call.
mod cancellation; // What stops a statement, and what becomes of its connection.
mod cluster; // A server of a test's own.
mod connect; // Connection strings, and connections with everything that can be wrong with them.
mod escape_attempts; // What gets out of a transaction that only reads, and past a role that may only read.
mod identity; // Roles, claims, and row-level security under load.
mod ingest; // Tables that take rows.
mod large_rows; // Rows above the bound, and the memory that they take.
mod lone_statements; // Statements without a transaction around them.
mod outages; // Restarts, killed backends, dropped tables and full disks, under load.
mod parameters; // What the server makes of bound parameters.
mod pooler; // Statements, types and names behind PgBouncer.
mod rendering; // Record batches as callers read them.
mod round_trips; // Random values of each type.
mod schema_changes; // Tables, views and types that change between two runs of one statement.
mod scripts; // The scripts of `tests/slt`.
mod shared_server; // The connection that the tests of values share.
mod storms; // Callers that leave, many at once.
mod test_database; // The engine on a database of a test.
mod values; // Types as they are stated, and what is refused.
mod wire_statements; // What a connection and a call send to the server.
mod write_transactions; // Declared tools that write.
