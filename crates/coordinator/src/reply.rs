//! The replies of `core` as the types that their commands promise. This is the only place where a
//! reply is taken apart by its kind.

use tenure_core::command::{
    Command, Extended, Leased, Registered, Reply, Reported, Signaled, Started, Submitted, Swept,
};
use tenure_log::Log;
use tenure_record::time::Now;

use crate::refusal::Refusal;
use crate::request::SignaledRun;
use crate::step::Coordinator;

/// What a kind of reply carries.
pub(crate) trait FromReply: Sized {
    /// The content of the reply, if it is of this kind.
    fn from_reply(reply: Reply) -> Option<Self>;
}

macro_rules! from_reply {
    ($($content:ty: $pattern:pat => $value:expr;)*) => {
        $(impl FromReply for $content {
            fn from_reply(reply: Reply) -> Option<Self> {
                if let $pattern = reply { Some($value) } else { None }
            }
        })*
    };
}

from_reply! {
    Vec<Submitted>: Reply::Submitted(tasks) => tasks;
    Vec<Leased>: Reply::Leased(leases) => leases;
    Extended: Reply::Extended(extended) => extended;
    Vec<Reported>: Reply::Reported { reports, .. } => reports;
    Swept: Reply::Swept(swept) => swept;
    Registered: Reply::Registered(registered) => registered;
    Started: Reply::Started(started) => started;
    Vec<Started>: Reply::StartedMany(started) => started;
    Signaled: Reply::Signaled(signaled) => signaled;
    SignaledRun: Reply::SignaledByKey { run_id, outcome, signaled } =>
        SignaledRun { run_id, outcome, signaled };
}

impl<L: Log> Coordinator<L> {
    /// Runs a command whose reply carries a `T`.
    pub(crate) fn run_as<T: FromReply>(
        &mut self,
        command: &Command,
        now: Now,
    ) -> Result<T, Refusal> {
        let reply = self.run(command, now)?;
        Ok(T::from_reply(reply).expect("a command has one kind of reply"))
    }
}
