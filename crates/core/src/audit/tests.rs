//! Each law, broken by hand.
