//! Every bound of the doors has a name, a value and a place where it is enforced.

use std::time::Duration;

/// Bytes of a request's body, unless it is a batch.
pub const BODY_BYTES_MAX: usize = (1 << 20) + (64 << 10);
/// Bytes of the body of a batch.
pub const BATCH_BODY_BYTES_MAX: usize = 16 << 20;
/// How deep JSON may be nested.
pub const JSON_DEPTH_MAX: usize = 64;
/// Characters of a parser's message that a refusal repeats, if it does not quote the request.
pub const MESSAGE_CHARS_MAX: usize = 256;
/// How long the headers of a request may take to arrive.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be without a request as long as none of its requests has passed the
/// guard, the time before the first one included.
pub const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection of an admitted client may be without a request. HTTP/1 connections end
/// earlier, because [`HEADER_TIMEOUT`] runs between requests too.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long an idle connection may take to end after an HTTP/2 client was told.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the accept loop waits for an evicted connection to give its place back.
pub const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of an API key: shorter ones can be guessed.
pub const API_KEY_BYTES_MIN: usize = 16;
/// Bytes of an API key: longer ones are most likely a file that was given by mistake.
pub const API_KEY_BYTES_MAX: usize = 4_096;
/// How long the body of a request may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of all bodies that are being read, those of gRPC included.
pub const BODIES_BYTES_MAX: usize = 256 << 20;
/// Bytes of all answers that are made and sent.
pub const ANSWERS_BYTES_MAX: u64 = 256 << 20;
/// Bytes of the answers that one connection has not read; the next one is made when it has read some.
pub const CONNECTION_ANSWERS_BYTES_MAX: usize = 8 << 20;
/// Bytes of an answer that is small: it never waits for the answers of other connections.
pub const ANSWER_SMALL_BYTES: usize = 4 << 10;
/// Bytes of an answer that are handed to an HTTP/2 stream at a time.
pub const ANSWER_PIECE_BYTES: usize = 16 << 10;
/// Bytes of an answer that are handed to an HTTP/1 connection at a time.
pub const ANSWER_PIECE_BYTES_HTTP1: usize = 64 << 10;
/// How long a request may wait for room for its answer.
pub const ANSWER_ROOM_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection with answers to read that takes fewer than [`ANSWER_TAKEN_BYTES_MIN`] in this time is
/// closed.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that a connection with answers to read has to take in [`ANSWER_TIMEOUT`].
pub const ANSWER_TAKEN_BYTES_MIN: u64 = 512 << 10;
/// HTTP/2 streams of one connection at a time.
pub const STREAMS_MAX: u32 = 256;
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
/// Bytes of answers that the kernel holds for a connection and has not sent, about.
pub const UNSENT_BYTES_MAX: u32 = 128 << 10;
/// Bytes of tasks, runs or tokens after which a page of a list ends; the one that passes it is still on it.
pub const PAGE_BYTES: usize = 1 << 20;
/// Bytes of a request's headers.
pub const HEADER_BYTES_MAX: usize = 32 << 10;
/// The smallest memory budget.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// Percent of the memory that the system allows that the budget takes, unless one is given.
pub const MEMORY_PERCENT_DEFAULT: u64 = 80;
/// Connections at a time, and never more than half of the files that may be open.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Those who follow live updates at a time.
pub const SUBSCRIBERS_MAX: usize = 1_000;
/// Bytes of live updates that are decoded at a time and shared by all subscribers at that place. One
/// that does not read holds two of these portions.
pub const PORTION_BYTES: usize = 32 << 10;
/// Portions that are kept for subscribers that come to the same place.
pub const PORTIONS_MAX: usize = 512;
/// Portions that one read of the log yields, so that a large record is decoded once for many of them.
pub const PORTIONS_PER_READ_MAX: usize = 32;
/// Reads of the log for subscribers that run concurrently, and never more than half of the
/// processors. Each read decodes whole records, so this bounds memory and CPU time while many
/// subscribers catch up at different places.
pub const PORTION_READS_MAX: usize = 4;
/// Bytes of live updates on their way to all subscribers.
pub const SUBSCRIBERS_BYTES_MAX: u64 = 256 << 20;
/// How much longer subscribers wait for news for each one that there is, so that many of them do not
/// take the processors from those who work.
pub const SUBSCRIBER_PACE: Duration = Duration::from_micros(50);
/// How long a subscriber may take to read a portion; then it is let go.
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
/// Bytes that an upload must bring in each second that the server waits for it, beyond
/// [`BLOB_IDLE_TIMEOUT`].
pub const BLOB_RATE_MIN_BYTES_PER_S: u64 = 64 << 10;
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
/// Tokens of a run that its graph counts; those with the lowest numbers.
pub const GRAPH_TOKENS_MAX: usize = 100_000;
/// Bytes that a graph takes while its tokens are counted and it is sent.
pub const GRAPH_BYTES: usize = 4 << 20;
