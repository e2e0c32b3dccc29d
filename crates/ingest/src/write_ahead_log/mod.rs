//! A log of records that are on disk when they are acknowledged.
