//! Keys and certificates are read again, also while a new configuration cannot be entered.

use std::sync::atomic::Ordering;

use super::{Assembly, identity};

impl Assembly {

}
