//! The stable error codes, known on both sides of the wire. One table has everything about a code:
//! its text, its HTTP and gRPC status, whether a retry makes sense, and its title. The rules, the
//! server, the SDK, the CLI and the book read this table. Beside it: how both sides quote text and write
//! durations.

mod duration;
mod echo;
mod terminal;

use std::fmt;
use std::str::FromStr;

pub use duration::{DURATION_UNITS, duration_text};
pub use echo::{ECHO_CHARS_MAX, Echo};
pub use terminal::{escape_line, is_printable};

/// Whether a client should repeat a refused request.
enum Retry {
    /// The condition passes by itself: repeat the request unchanged, after a delay.
    Later,
    /// The same request gets the same answer until somebody changes something.
    Never,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $http:literal, $grpc:ident, $retry:ident, $title:literal;)*) => {
        /// A stable error code. Programs compare codes; a code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes, in alphabetical order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it goes over the wire: snake_case.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The HTTP status of a response with this code.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self {
                    $(Self::$name => $http,)*
                }
            }

            /// The gRPC status of a response with this code.
            #[must_use]
            pub const fn grpc_status(self) -> GrpcStatus {
                match self {
                    $(Self::$name => GrpcStatus::$grpc,)*
                }
            }

            /// Whether the request can succeed unchanged a little later. Responses with a retryable
            /// code carry `Retry-After` (HTTP) or `tenure-retry-after-ms` (gRPC).
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self {
                    $(Self::$name => matches!(Retry::$retry, Retry::Later),)*
                }
            }

            /// What the code means, in a few words: the `title` of RFC 9457.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }

            /// The page about the code, relative to the sources of the book.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("codes/", $text, ".md"),)*
                }
            }

            /// The `type` of RFC 9457: a URI that names the code. It is a name and not an address,
            /// because the book is not served at a fixed one.
            #[must_use]
            pub const fn type_uri(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("urn:tenure:code:", $text),)*
                }
            }
        }
    };
}

codes! {
    /// The file of an artifact was removed or damaged.
    ArtifactLost = "artifact_lost", 500, DataLoss, Never,
        "The file of an artifact is missing or damaged";
    /// The `Host` of a request is not a name of this machine.
    BadHost = "bad_host", 421, PermissionDenied, Never,
        "The request names another host";
    /// The request contradicts the state.
    Conflict = "conflict", 409, FailedPrecondition, Never,
        "The request contradicts the current state";
    /// No new work is accepted, because the disk is nearly full.
    DiskFull = "disk_full", 507, ResourceExhausted, Later,
        "The disk is nearly full";
    /// A web page of another origin sent the request.
    Forbidden = "forbidden", 403, PermissionDenied, Never,
        "A page of another origin may not use this server";
    /// The id counters have no room left.
    IdsExhausted = "ids_exhausted", 507, ResourceExhausted, Never,
        "The id counters have no room left";
    /// The request must be corrected.
    InvalidRequest = "invalid_request", 400, InvalidArgument, Never,
        "The request must be corrected";
    /// The JSON of the request is nested too deep.
    JsonTooDeep = "json_too_deep", 400, InvalidArgument, Never,
        "The JSON is nested too deep";
    /// The lease of a report does not hold.
    LeaseLost = "lease_lost", 409, FailedPrecondition, Never,
        "The lease does not hold";
    /// The records that were asked for are no longer in the log.
    LogTrimmed = "log_trimmed", 410, OutOfRange, Never,
        "The beginning of the log was removed";
    /// No new work is accepted, because the memory budget is nearly used up.
    MemoryFull = "memory_full", 507, ResourceExhausted, Later,
        "The memory budget is nearly used up";
    /// The path exists, but not with this method.
    MethodNotAllowed = "method_not_allowed", 405, Unimplemented, Never,
        "The path does not take this method";
    /// No such task, run, workflow, signal, queue or path.
    NotFound = "not_found", 404, NotFound, Never,
        "There is no such task, run, workflow, signal, queue or path";
    /// The request was shed, because the server has too much to do.
    Overloaded = "overloaded", 429, ResourceExhausted, Later,
        "The server has too much to do";
    /// A request, an item or a value is over a size limit.
    PayloadTooLarge = "payload_too_large", 413, ResourceExhausted, Never,
        "The request is over a size limit";
    /// The queue has as many waiting tasks as its `max_waiting` allows.
    QueueFull = "queue_full", 429, ResourceExhausted, Later,
        "The queue is full";
    /// The body of the request did not arrive in time.
    RequestTimeout = "request_timeout", 408, DeadlineExceeded, Never,
        "The body did not arrive in time";
    /// The run is parked until an operator cancels or unparks it.
    RunParked = "run_parked", 409, FailedPrecondition, Never,
        "The run is parked until it is canceled or unparked";
    /// The task has ended and cannot be canceled.
    TaskTerminal = "task_terminal", 409, FailedPrecondition, Never,
        "The task has ended";
    /// The number of names that tasks have is at its limit. A name goes away with its last task.
    TooManyNames = "too_many_names", 429, ResourceExhausted, Later,
        "The number of task names is at its limit";
    /// The number of queues is at its limit. A queue goes away with its last task.
    TooManyQueues = "too_many_queues", 429, ResourceExhausted, Later,
        "The number of queues is at its limit";
    /// The number of workflows, or of versions of one, is at its limit.
    TooManyWorkflows = "too_many_workflows", 429, ResourceExhausted, Never,
        "The number of workflows or versions is at its limit";
    /// The API key is missing or wrong.
    Unauthorized = "unauthorized", 401, Unauthenticated, Never,
        "The API key is missing or wrong";
    /// The server has stopped, is about to, or cannot be reached.
    Unavailable = "unavailable", 503, Unavailable, Later,
        "The server has stopped or is stopping";
    /// The body has the wrong media type, or is compressed.
    UnsupportedMediaType = "unsupported_media_type", 415, InvalidArgument, Never,
        "The body has the wrong media type or coding";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not a code of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this version has no such error code")
    }
}

impl std::error::Error for UnknownCode {}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL.iter().find(|code| code.as_str() == text).copied().ok_or(UnknownCode)
    }
}

macro_rules! grpc_statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// The gRPC statuses that our codes map to, with their numbers in the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum GrpcStatus {
            $($(#[$doc])* $name = $number,)*
        }

        impl GrpcStatus {
            /// The number that goes over the wire as `grpc-status`.
            #[must_use]
            pub const fn number(self) -> i32 {
                self as i32
            }

            /// The name in the gRPC documentation.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

grpc_statuses! {
    /// The request must be corrected.
    InvalidArgument = 3, "INVALID_ARGUMENT";
    /// The request took too long to arrive.
    DeadlineExceeded = 4, "DEADLINE_EXCEEDED";
    /// There is no such thing.
    NotFound = 5, "NOT_FOUND";
    /// The caller may not do this.
    PermissionDenied = 7, "PERMISSION_DENIED";
    /// A limit or a resource is used up.
    ResourceExhausted = 8, "RESOURCE_EXHAUSTED";
    /// The state does not allow the request.
    FailedPrecondition = 9, "FAILED_PRECONDITION";
    /// The request goes beyond what is there.
    OutOfRange = 11, "OUT_OF_RANGE";
    /// There is no such method.
    Unimplemented = 12, "UNIMPLEMENTED";
    /// The server cannot be used at the moment.
    Unavailable = 14, "UNAVAILABLE";
    /// Stored data is lost or damaged.
    DataLoss = 15, "DATA_LOSS";
    /// The caller did not say who it is.
    Unauthenticated = 16, "UNAUTHENTICATED";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_snake_case_and_parse_back() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.as_str()));
        for code in Code::ALL {
            let text = code.as_str();
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text}");
            assert_eq!(text.parse(), Ok(*code));
        }
        assert_eq!("no_such_code".parse::<Code>(), Err(UnknownCode));
    }

    #[test]
    fn a_retryable_code_has_a_status_that_clients_retry() {
        for code in Code::ALL.iter().filter(|code| code.is_retryable()) {
            assert!(matches!(code.http_status(), 429 | 503 | 507), "{code}");
            let grpc = code.grpc_status();
            assert!(matches!(grpc, GrpcStatus::ResourceExhausted | GrpcStatus::Unavailable));
        }
    }

    #[test]
    fn statuses_have_the_numbers_of_the_protocol() {
        assert_eq!(GrpcStatus::InvalidArgument.number(), 3);
        assert_eq!(GrpcStatus::ResourceExhausted.number(), 8);
        assert_eq!(GrpcStatus::Unauthenticated.number(), 16);
    }
}
