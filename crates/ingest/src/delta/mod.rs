//! Delta tables: their log and their data files.
