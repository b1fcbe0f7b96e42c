//! What a refusal over gRPC says: the true value and bound, and the code also where the gRPC library
//! rejects a message by itself.

use bytes::{Buf, BufMut, Bytes};
use tenure_proto::v1;
use tenure_sdk::NewTask;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::grpc::server::{Server, code_of};

/// Messages as bytes, whatever is in them.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

async fn raw(server: &Server) -> Grpc<Channel> {
    let endpoint = tonic::transport::Endpoint::new(server.address.clone()).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    grpc
}

/// How a method with one request refuses these bytes.
async fn refused(server: &Server, path: &'static str, message: Bytes) -> Status {
    let (request, path) = (Request::new(message), PathAndQuery::from_static(path));
    raw(server).await.unary(request, path, Raw).await.unwrap_err()
}

/// How a method with a stream of requests ends after these bytes.
async fn ended(server: &Server, path: &'static str, messages: Vec<Bytes>) -> Status {
    let request = Request::new(tokio_stream::iter(messages));
    let path = PathAndQuery::from_static(path);
    let mut answers = match raw(server).await.streaming(request, path, Raw).await {
        Ok(answers) => answers.into_inner(),
        Err(status) => return status,
    };
    loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return Status::ok("ended in good order"),
            Err(status) => return status,
        }
    }
}

/// An endless varint; a text that is not UTF-8; a field that is longer than its message.
const BROKEN: [&[u8]; 3] = [
    &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x0a, 2, 0xff, 0xfe],
    &[0x0a, 0x7f],
];
/// A queue that is not UTF-8, in a task, in a request.
const DEEP: &[u8] = &[0x0a, 4, 0x0a, 2, 0xff, 0xfe];

fn assert_undecodable(status: &Status, what: &str) {
    assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status}");
    assert!(status.message().starts_with("the message cannot be decoded"), "{what}: {status}");
    assert_eq!(code_of(status), "invalid_request", "{what}");
}

fn assert_too_large(status: &Status, what: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{what}: {status}");
    assert!(status.message().contains("more than 16777216 bytes"), "{what}: {status}");
    assert_eq!(code_of(status), "payload_too_large");
}

#[tokio::test]
async fn a_message_that_cannot_be_decoded_is_the_client_s_fault() {
    let server = Server::start("broken");
    for broken in BROKEN {
        let broken = Bytes::from_static(broken);
        for path in ["/tenure.v1.Tasks/Submit", "/tenure.v1.Workers/Lease", "/tenure.v1.Queues/Get"]
        {
            assert_undecodable(&refused(&server, path, broken.clone()).await, path);
        }
        for path in ["/tenure.v1.Tasks/SubmitStream", "/tenure.v1.Workers/Work"] {
            assert_undecodable(&ended(&server, path, vec![broken.clone()]).await, path);
        }
        // The second message of a stream.
        let empty = Bytes::new();
        let both = vec![empty, broken.clone()];
        let path = "/tenure.v1.Tasks/SubmitStream";
        assert_undecodable(&ended(&server, path, both).await, path);
    }
    let status = refused(&server, "/tenure.v1.Tasks/Submit", Bytes::from_static(DEEP)).await;
    for part in ["NewTask.queue", "not UTF-8", "send it as tenure.v1 has it"] {
        assert!(status.message().contains(part), "{part} is not in {status}");
    }
    let metrics = server.metrics();
    assert!(
        metrics.contains("tenure_requests_refused_total{code=\"invalid_request\"}"),
        "{metrics}"
    );
    server.client().await.tasks().submit(NewTask::new("q", "1")).await.unwrap();
}

#[tokio::test]
async fn a_message_over_the_limit_is_told_the_limit() {
    let server = Server::start("over");
    let large = Bytes::from(vec![0; 17 << 20]);
    let path = "/tenure.v1.Tasks/SubmitBatch";
    assert_too_large(&refused(&server, path, large.clone()).await, path);
    for path in ["/tenure.v1.Tasks/SubmitStream", "/tenure.v1.Workers/Work"] {
        assert_too_large(&ended(&server, path, vec![large.clone()]).await, path);
    }
    server.client().await.tasks().submit(NewTask::new("q", "1")).await.unwrap();
}

#[tokio::test]
async fn moments_and_spans_that_cannot_be_are_refused_with_their_true_value() {
    let server = Server::start("spans");
    let wire = server.wire().await;
    let submit = |task: v1::NewTask| {
        let mut tasks = wire.tasks();
        async move {
            let request = v1::SubmitRequest { task: Some(task) };
            tasks.submit(request).await.unwrap_err()
        }
    };
    let task = || v1::NewTask { queue: "q".to_owned(), ..Default::default() };
    for ms in [u64::MAX, 1 << 53, 253_402_300_800_000] {
        let error = submit(v1::NewTask { run_at: Some(ms), ..task() }).await;
        assert_eq!(code_of(&error), "invalid_request");
        let said = format!("run_at is {ms} ms after 1970; the latest moment is 9999-12-31");
        assert!(error.message().starts_with(&said), "{error}");
    }
    for ms in [u64::MAX, 1 << 63] {
        let error = submit(v1::NewTask { delay_ms: Some(ms), ..task() }).await;
        let said = format!("delay_ms is {ms}; it must be from 0 to 31622400000");
        assert_eq!((code_of(&error), error.message()), ("invalid_request", said.as_str()));
        let backoff = v1::Backoff { initial_ms: Some(ms), ..Default::default() };
        let error = submit(v1::NewTask { backoff: Some(backoff), ..task() }).await;
        assert!(error.message().starts_with(&format!("backoff.initial_ms is {ms};")), "{error}");
    }
    let get = v1::GetTaskRequest { task_id: 1, wait_ms: u64::MAX };
    let error = wire.tasks().get(get).await.unwrap_err();
    assert!(error.message().starts_with(&format!("wait_ms is {};", u64::MAX)), "{error}");
    let last = v1::NewTask { run_at: Some(253_402_300_799_999), ..task() };
    let request = v1::SubmitRequest { task: Some(last) };
    wire.tasks().submit(request).await.unwrap();
}
