//! What asks and commands are called in a line.

use tenure_coordinator::Ask;
use tenure_core::command::Command;

/// What an ask is called in a line.
pub(crate) fn name_of(ask: &Ask) -> &'static str {
    match ask {
        Ask::Command(command) | Ask::Change { command, .. } | Ask::ChangeRun { command, .. } => {
            name_of_command(command)
        }
        Ask::Submit(_) => "SubmitTasks",
        Ask::StartRun(_) => "StartRun",
        Ask::Lease { .. } => "LeaseTasks",
        Ask::Query(_) => "Query",
        Ask::Register(_) => "Register",
        Ask::SignOff(_) => "SignOff",
        Ask::TakeSnapshot => "TakeSnapshot",
    }
}

fn name_of_command(command: &Command) -> &'static str {
    match command {
        Command::SubmitTasks(_) => "SubmitTasks",
        Command::LeaseTasks(_) => "LeaseTasks",
        Command::Heartbeat(_) => "Heartbeat",
        Command::CompleteTask(_) => "CompleteTask",
        Command::FailTask(_) => "FailTask",
        Command::ReleaseTask(_) => "ReleaseTask",
        Command::ReportTasks(_) => "ReportTasks",
        Command::CancelTask(_) => "CancelTask",
        Command::RetryTask(_) => "RetryTask",
        Command::ExpireLeases => "ExpireLeases",
        Command::DropLeases(_) => "DropLeases",
        Command::FireDeadlines => "FireDeadlines",
        Command::PauseQueue(_) => "PauseQueue",
        Command::ResumeQueue(_) => "ResumeQueue",
        Command::ConfigureQueue(_) => "ConfigureQueue",
        Command::DeleteQueue(_) => "DeleteQueue",
        Command::DeleteWorkflow(_) => "DeleteWorkflow",
        Command::StartRuns(_) => "StartRuns",
        Command::SignalByKey(_) => "SignalByKey",
        Command::PurgeTasks(_) => "PurgeTasks",
        Command::PurgeArchived(_) => "PurgeArchived",
        Command::SkipIds(_) => "SkipIds",
        Command::RegisterWorkflow(_) => "RegisterWorkflow",
        Command::StartRun(_) => "StartRun",
        Command::CancelRun(_) => "CancelRun",
        Command::SignalRun(_) => "SignalRun",
        Command::ContinueDispatch => "ContinueDispatch",
        Command::ContinueEnding { .. } => "ContinueEnding",
        Command::ParkRun(_) => "ParkRun",
        Command::UnparkRun(_) => "UnparkRun",
    }
}
