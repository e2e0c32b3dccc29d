//! Has no code: its dependencies give the crates of the data side one set of features (see `Cargo.toml`).
