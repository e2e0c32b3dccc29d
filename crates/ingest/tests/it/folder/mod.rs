//! A folder of tables that take rows.
//!
//! - `fixture`: tables, batches, writes, and the rows that a view has.
//! - `writes`: rows are visible at once, and exactly once after moves and restarts.
//! - `keys`: repeated writes, also after damage.
//! - `columns`: what fits a table, and what its columns become.
//! - `tables`: names, dropped tables, the lock of the folder.
//! - `partitions`: writes of many partitions.
//! - `maintenance`: compaction, retention, unused files, verification.
//! - `pressure`: full memory, full log, a disk that fails.
//! - `crashes`: a process that is killed at random points.
//! - `damaged_files`: folders after a crash, and damaged files in them.
//! - `damage`: damaged logs and Delta tables. `log_damage`: whole files of the log. `kept_records`: tables with damage hold back
//!   no others.

mod columns;
mod crashes;
mod damage;
mod damaged_files;
mod fixture;
mod kept_records;
mod keys;
mod log_damage;
mod maintenance;
mod partitions;
mod pressure;
mod tables;
mod writes;
