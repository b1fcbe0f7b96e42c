//! How the values of branches become one. What `apply` computes is computed here, so each set of
//! rules is frozen once a log was written with it: another one is another version.

pub(crate) mod v1;
