//! A tonic server as its first example has it: nothing set, nothing decided.
use std::pin::Pin;

use retryd::wire::pb::{
    self,
    retry_service_server::{RetryService, RetryServiceServer},
};
use tonic::{Request, Response, Status, Streaming, transport::server::TcpIncoming};

#[tokio::main]
pub(crate) async fn serve() {
    let incoming =
        TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap().with_nodelay(Some(true));
    println!("{}", incoming.local_addr().unwrap());
    let service = RetryServiceServer::new(Stock(constant()));
    tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming(incoming)
        .await
        .unwrap();
}

struct Stock(pb::Decision);

type Answers =
    Pin<Box<dyn futures_core::Stream<Item = Result<pb::StreamedDecision, Status>> + Send>>;

#[tonic::async_trait]
impl RetryService for Stock {
    async fn decide(&self, _: Request<pb::RetryContext>) -> Result<Response<pb::Decision>, Status> {
        Ok(Response::new(self.0.clone()))
    }

    type DecideStreamStream = Answers;

    async fn decide_stream(
        &self,
        _: Request<Streaming<pb::RetryContext>>,
    ) -> Result<Response<Answers>, Status> {
        Err(Status::unimplemented("not compared"))
    }
}

/// What the others answer: as long as an answer of retryd.
pub(crate) fn constant() -> pb::Decision {
    pb::Decision {
        verdict: pb::Verdict::Retry.into(),
        reason: pb::Reason::Retryable.into(),
        delay: Some(pbjson_types::Duration { seconds: 0, nanos: 61_000_000 }),
        delay_source: pb::DelaySource::Backoff.into(),
        policy: "default".to_owned(),
        policy_revision: "embedded".to_owned(),
        budget: Some(pb::BudgetState {
            budget: "per-tenant".to_owned(),
            retries_available: 100,
            retries_capacity: 20,
        }),
        failure_class: pb::FailureClass::Transient.into(),
        ..Default::default()
    }
}
