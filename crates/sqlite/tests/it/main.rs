//! The engine of SQLite: files opened read-only, rows streamed into Arrow.
