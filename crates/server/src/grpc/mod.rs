//! gRPC: one file per service. A method parses, asks, and shows; it decides nothing.

mod backup;
mod events;
pub(crate) mod fast_path;
pub(crate) mod hello;
mod methods;
mod pushes;
mod queues;
mod runs;
mod status;
mod stops;
mod streams;
mod submit;
mod tasks;
mod work;
mod workers;
mod workflows;

use std::sync::Arc;

use axum::Router;
use tenure_proto::v1;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::app::App;
use crate::limits::GRPC_MESSAGE_BYTES_MAX;

pub(crate) use self::methods::{class_of, is_stream};
pub(crate) use self::status::{as_grpc, code_of, is_grpc};
pub(crate) use self::streams::Streams;

/// What a method gives back.
type Outcome<T> = Result<tonic::Response<T>, tonic::Status>;

/// What every service knows.
#[derive(Clone)]
struct Door {
    app: Arc<App>,
}

/// All that gRPC offers.
pub(crate) async fn routes(app: &Arc<App>) -> (Router, Health) {
    use v1::events_server::EventsServer;
    use v1::queues_server::QueuesServer;
    use v1::runs_server::RunsServer;
    use v1::status_server::StatusServer;
    use v1::tasks_server::TasksServer;
    use v1::workers_server::WorkersServer;
    use v1::workflows_server::WorkflowsServer;

    let door = Door { app: Arc::clone(app) };
    let (health, health_server) = tonic_health::server::health_reporter();
    let health = Health(health);
    health.set(ServingStatus::Serving).await;
    let tasks = TasksServer::new(door.clone()).max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX);
    let workers =
        WorkersServer::new(door.clone()).max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX);
    let workflows =
        WorkflowsServer::new(door.clone()).max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX);
    let runs = RunsServer::new(door.clone()).max_decoding_message_size(GRPC_MESSAGE_BYTES_MAX);
    // Without a fallback of its own: whoever finds nothing is answered by the one for HTTP.
    let routes = Routes::from(Router::new())
        .add_service(tasks)
        .add_service(workers)
        .add_service(QueuesServer::new(door.clone()))
        .add_service(workflows)
        .add_service(runs)
        .add_service(EventsServer::new(door.clone()))
        .add_service(StatusServer::new(door))
        .add_service(health_server);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .build_v1();
    let routes = match reflection {
        Ok(reflection) => routes.add_service(reflection),
        Err(error) => {
            tracing::error!(%error, "the schema cannot be shown");
            routes
        }
    };
    (routes.into_axum_router(), health)
}

/// Says how the services stand, to those who ask or watch.
pub(crate) struct Health(HealthReporter);

impl Health {
    /// Nothing is served any more.
    pub(crate) async fn stop(&self) {
        self.set(ServingStatus::NotServing).await;
    }

    async fn set(&self, status: ServingStatus) {
        // The empty name is the server as a whole.
        let names = ["", "Tasks", "Workers", "Queues", "Workflows", "Runs", "Events", "Status"];
        for name in names {
            let name = match name {
                "" => String::new(),
                name => format!("tenure.v1.{name}"),
            };
            self.0.set_service_status(name, status).await;
        }
    }
}
