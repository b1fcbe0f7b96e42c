//! A server in a process of its own, and a worker's stream to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_proto::v1;
use tenure_sdk::{Client, ConnectOptions};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use v1::queues_client::QueuesClient;
use v1::tasks_client::TasksClient;
use v1::workers_client::WorkersClient;

/// Nothing in these tests takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A server that goes away with its test.
pub(crate) struct Server {
    child: Child,
    data: PathBuf,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, None)
    }

    pub(crate) fn start_with(name: &str, api_key: Option<&str>) -> Self {
        let data = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("grpc-{}-{name}", std::process::id()));
        let (child, address) = spawn(&data, "127.0.0.1:0", api_key);
        Self { child, data, address }
    }

    /// Kills it without warning, and starts it again at the same address.
    pub(crate) fn crash_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let listen = self.address.trim_start_matches("http://");
        (self.child, self.address) = spawn(&self.data, listen, None);
    }

    /// Asks it to stop, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        self.child.wait().unwrap().code()
    }

    /// What it has counted.
    pub(crate) fn metrics(&self) -> String {
        let host = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.address).await.unwrap()
    }

    pub(crate) async fn client_with(&self, key: &str) -> Client {
        ConnectOptions::new(&self.address).api_key(key).connect().await.unwrap()
    }

    /// The services of the wire contract, without the SDK.
    pub(crate) async fn wire(&self) -> Wire {
        self.wire_with(Key(None)).await
    }

    /// The services of the wire contract, with an API key in every request.
    pub(crate) async fn wire_with_key(&self, key: &str) -> Wire {
        self.wire_with(Key(Some(format!("Bearer {key}").parse().unwrap()))).await
    }

    async fn wire_with(&self, key: Key) -> Wire {
        let channel = Endpoint::new(self.address.clone()).unwrap().connect().await.unwrap();
        Wire(InterceptedService::new(channel, key))
    }
}

/// The services of the wire contract, as they were generated.
#[derive(Clone)]
pub(crate) struct Wire(InterceptedService<Channel, Key>);

#[derive(Clone)]
pub(crate) struct Key(Option<MetadataValue<Ascii>>);

impl Interceptor for Key {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert("authorization", key.clone());
        }
        Ok(request)
    }
}

impl Wire {
    pub(crate) fn tasks(&self) -> TasksClient<InterceptedService<Channel, Key>> {
        TasksClient::new(self.0.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn workers(&self) -> WorkersClient<InterceptedService<Channel, Key>> {
        WorkersClient::new(self.0.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn queues(&self) -> QueuesClient<InterceptedService<Channel, Key>> {
        QueuesClient::new(self.0.clone())
    }
}

/// The stable code of a refusal.
pub(crate) fn code_of(status: &Status) -> &str {
    status.metadata().get("tenure-code").map_or("", |code| code.to_str().unwrap())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

fn spawn(data: &PathBuf, listen: &str, api_key: Option<&str>) -> (Child, String) {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_tenure"));
    serve.arg("serve").arg("--data").arg(data).args(["--listen", listen]);
    serve.env_remove("TENURE_API_KEY").envs(api_key.map(|key| ("TENURE_API_KEY", key)));
    let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let address = ready.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(address.starts_with("http://"), "{ready:?}");
    (child, address)
}

/// A worker's stream, by hand.
pub(crate) struct Stream {
    pub(crate) send: mpsc::Sender<v1::WorkRequest>,
    pub(crate) receive: Streaming<v1::WorkResponse>,
    pub(crate) welcome: v1::Welcome,
}

pub(crate) fn hello(worker: &str, grace_ms: u64) -> v1::Hello {
    v1::Hello {
        worker: worker.to_owned(),
        queues: vec!["q".to_owned()],
        disconnect_grace_ms: Some(grace_ms),
        slots: 1,
        ..v1::Hello::default()
    }
}

impl Stream {
    pub(crate) async fn open(wire: &Wire, hello: v1::Hello) -> Self {
        let (send, outgoing) = mpsc::channel(16);
        let hello = v1::WorkRequest { hello: Some(hello), ..Default::default() };
        send.send(hello).await.unwrap();
        let receive = wire.workers().work(ReceiverStream::new(outgoing)).await.unwrap();
        let mut receive = receive.into_inner();
        let first = receive.message().await.unwrap().unwrap();
        Self { send, receive, welcome: first.welcome.unwrap() }
    }

    pub(crate) async fn say(&self, message: v1::WorkRequest) {
        self.send.send(message).await.unwrap();
    }

    pub(crate) async fn credit(&self, credit: u32) {
        self.say(v1::WorkRequest { credit, ..Default::default() }).await;
    }

    pub(crate) async fn report(&self, reports: v1::Reports) {
        self.say(v1::WorkRequest { reports: Some(reports), ..Default::default() }).await;
    }

    pub(crate) async fn next(&mut self) -> v1::WorkResponse {
        let next = tokio::time::timeout(LONG, self.receive.message()).await;
        next.expect("something comes").unwrap().expect("the stream goes on")
    }

    /// Leases, until there are so many.
    pub(crate) async fn leases(&mut self, count: usize) -> Vec<v1::Lease> {
        let mut leases = Vec::new();
        while leases.len() < count {
            leases.extend(self.next().await.leases);
        }
        leases
    }

    /// Nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        let wait = Duration::from_millis(200);
        tokio::time::timeout(wait, self.receive.message()).await.is_err()
    }
}

pub(crate) fn lease_ref(lease: &v1::Lease) -> v1::LeaseRef {
    v1::LeaseRef { task_id: lease.task_id, lease_id: lease.lease_id }
}

pub(crate) fn completes(sequence: u64, leases: &[v1::Lease]) -> v1::Reports {
    let complete = |lease: &v1::Lease| v1::CompleteReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        output: lease.payload.to_vec(),
        artifacts: Vec::new(),
        worker: None,
    };
    v1::Reports { sequence, completes: leases.iter().map(complete).collect(), ..Default::default() }
}
