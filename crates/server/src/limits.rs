//! Every bound of the doors has a name, a value and a place where it is enforced.

use std::time::Duration;

/// Bytes of a request's body, unless it is a batch.
pub const BODY_BYTES_MAX: usize = (1 << 20) + (64 << 10);
/// Bytes of the body of a batch.
pub const BATCH_BODY_BYTES_MAX: usize = 16 << 20;
/// How deep JSON may be nested.
pub const JSON_DEPTH_MAX: usize = 64;
/// How long the headers of a request may take to arrive.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the body of a request may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of all bodies that are being read, those of gRPC included.
pub const BODIES_BYTES_MAX: usize = 256 << 20;
/// Bytes of requests with new work that are handled at a time; the others wait for their turn.
pub const NEW_WORK_BYTES_AT_ONCE: u64 = 256 << 10;
/// The same for those who had to wait, while workers find more work than they take. It is never less,
/// so that new work gets on.
pub const NEW_WORK_BYTES_AT_LEAST: u64 = 32 << 10;
/// How long a large one keeps its turn after its answer, while workers find more work than they take.
pub const NEW_WORK_REST_MAX: Duration = Duration::from_millis(100);
/// Requests with new work that wait for their turn.
pub const NEW_WORK_WAITING_MAX: usize = 4_096;
/// How long one of them may wait.
pub const NEW_WORK_WAIT_MAX: Duration = Duration::from_secs(1);
/// Bytes of a refused request that are read and thrown away, so that its sender hears why.
pub const DRAIN_BYTES_MAX: usize = 32 << 20;
/// How long they may take to arrive.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take to read what was sent to it.
pub const READER_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of tasks, runs or tokens after which a page of a list ends; the one that passes it is still on it.
pub const PAGE_BYTES: usize = 1 << 20;
/// Bytes of a request's headers.
pub const HEADER_BYTES_MAX: usize = 32 << 10;
/// Connections at a time, and never more than half of the files that may be open.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Those who follow live updates at a time.
pub const SUBSCRIBERS_MAX: usize = 1_000;
/// Events that wait for one subscriber that does not read.
pub const SUBSCRIBER_EVENTS_MAX: usize = 1_024;
/// How long a full subscriber may take to read one event; then it is let go.
pub const SUBSCRIBER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of one gRPC message that comes in.
pub const GRPC_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of the faults of a definition in the metadata of a gRPC refusal, which clients bound.
pub const FAULTS_BYTES_MAX: usize = 6 << 10;
/// Streams of workers at a time, those included whose leases wait for a worker to come back.
pub const WORK_STREAMS_MAX: usize = 10_000;
/// Requests of one stream that may be under way; beyond that it is not read.
pub const STREAM_REQUESTS_MAX: usize = 64;
/// Messages that wait for one worker that does not read.
pub const PUSHES_MAX: usize = 64;
/// Bytes of payloads after which a push of leases goes on in another message.
pub const PUSH_BYTES: usize = 1 << 20;
/// Bytes of payloads from the shelf that wait for one worker; the next ones are read when it has taken
/// some.
pub const PUSH_SHELVED_BYTES: usize = 4 << 20;
/// Tasks that a worker may say it can take.
pub const CREDIT_MAX: u32 = 100_000;
/// How long leases outlive a stream that was cut, unless its hello says otherwise.
pub const DISCONNECT_GRACE_MS_DEFAULT: u64 = 5_000;
/// The longest that a hello may say.
pub const DISCONNECT_GRACE_MS_MAX: u64 = 60_000;
/// Lines about transitions and refusals in one second; beyond that they are counted.
pub const LOG_LINES_PER_S: usize = 1_000;
/// Refusals that wait to be written; beyond that they are counted.
pub const LOG_LINES_WAITING_MAX: usize = 1_024;
/// Bytes of a blob: a file that is uploaded before a completion names it.
pub const BLOB_BYTES_MAX: u64 = 1 << 30;
/// Blobs that are uploaded at a time.
pub const BLOB_UPLOADS_MAX: usize = 64;
/// How long an upload may be silent.
pub const BLOB_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an upload may take.
pub const BLOB_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Bytes of a blob that are read or written at a time.
pub const BLOB_PIECE_BYTES: usize = 256 << 10;
/// How long a blob stays that nobody names: a completion may be about to.
pub const BLOB_GRACE: Duration = Duration::from_secs(3_600);
/// How long an orderly stop waits for requests under way.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the log may take to end after that.
pub const ENGINE_STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Items on one page of a list unless somebody asks for another number.
pub const LIST_LIMIT_DEFAULT: usize = 100;
/// Copies that may be in the making at once: each reads as much as the disk gives.
pub const BACKUPS_MAX: usize = 1;
/// Bytes of a copy that go in one message.
pub const BACKUP_PIECE_BYTES: usize = 1 << 20;
/// Old records that are decided again at a time; each takes as much memory as the state.
pub const REDECIDES_MAX: usize = 1;
/// How long what is to be archived waits for company: one frame for many.
pub const ARCHIVE_EVERY: Duration = Duration::from_secs(5);
/// How long an archive that could not be written is left alone before the next try.
pub const ARCHIVE_RETRY: Duration = Duration::from_secs(5);
/// How often a line says so, as long as that goes on.
pub const ARCHIVE_SAY_EVERY: Duration = Duration::from_secs(60);
/// Bytes of an archive file after which another one is begun.
pub const ARCHIVE_FILE_BYTES: u64 = 64 << 20;
/// Bytes of lines after which a frame of an archive file is closed.
pub const ARCHIVE_FRAME_BYTES: usize = 4 << 20;
/// How hard zstd tries.
pub const ARCHIVE_LEVEL: i32 = 3;
/// Bytes of an archive file that is read.
pub const ARCHIVE_FILE_READ_MAX: u64 = 1 << 30;
/// Bytes of lines in one frame that is read.
pub const ARCHIVE_FRAME_READ_MAX: u64 = 256 << 20;
