//! A server that stops says so.

use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::grpc::server::{LONG, Server};

async fn next(watch: &mut tonic::Streaming<HealthCheckResponse>) -> i32 {
    let next = tokio::time::timeout(LONG, watch.message()).await.expect("word comes");
    next.unwrap().expect("the stream goes on").status
}

#[tokio::test]
async fn whoever_watches_its_health_hears_that_it_serves_no_more() {
    let mut server = Server::start("stopping");
    let channel = tonic::transport::Endpoint::new(server.address.clone()).unwrap();
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let mut watches = Vec::new();
    for service in ["", "tenure.v1.Tasks", "tenure.v1.Workers"] {
        let service = service.to_owned();
        let watch = health.watch(HealthCheckRequest { service }).await.unwrap();
        watches.push(watch.into_inner());
    }
    for watch in &mut watches {
        assert_eq!(next(watch).await, 1, "it serves");
    }
    let stopped = tokio::task::spawn_blocking(move || server.stop());
    for watch in &mut watches {
        assert_eq!(next(watch).await, 2, "it does not serve any more");
    }
    drop((watches, health));
    assert_eq!(stopped.await.unwrap(), Some(0));
}
