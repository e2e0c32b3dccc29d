//! A folder of tables that take rows.
//!
//! - `fixture`: tables, batches, writes, and the rows that a view has.
//! - `writes`: rows are visible at once, and exactly once after moves and restarts.
//! - `keys`: repeated writes.
//! - `columns`: what fits a table, and what its columns become.
//! - `tables`: names, dropped tables, the lock of the folder.
//! - `partitions`: writes of many partitions.
//! - `maintenance`: compaction, retention, unused files, verification.
//! - `pressure`: full memory, full log, a disk that fails.
//! - `crashes`: a process that is killed at random points.
//! - `damage`: damaged logs, keys and Delta tables.

mod columns;
mod crashes;
mod damage;
mod fixture;
mod keys;
mod maintenance;
mod partitions;
mod pressure;
mod tables;
mod writes;
