//! What the system allows this process: how many files it may open, and how large they may get.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::limits::CONNECTIONS_MAX;

/// How many connections there may be. Half of the descriptors are for files: a log that cannot open
/// its next segment is the end of the server, so clients must not be able to take them all.
pub(crate) fn connections_max() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // As many as we may. Who forbids it leaves us with what we have.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = usize::try_from(files / 2).unwrap_or(usize::MAX).min(CONNECTIONS_MAX);
    if connections < CONNECTIONS_MAX {
        tracing::warn!(
            "only {files} files may be open, so that there are at most {connections} connections \
             at a time; raise it with `ulimit -n`"
        );
    }
    connections
}

/// Makes a write that passes the largest size of a file fail, as any other can. Unheard, its signal
/// would end the process without a word. Needs a runtime.
pub fn let_large_writes_fail() {
    // Where it cannot be had, the signal does what it always does.
    let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
}
