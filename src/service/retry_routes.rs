//! RetryService, from the path of a call to what answers it.
use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use tonic::{body::Body, server::NamedService};
use tower::Service;

use super::{DecideStream, Retryd};
use crate::budget::Store;
use crate::server::Peer;
use crate::wire::pb::retry_service_server::RetryServiceServer;

const DECIDE_STREAM: &str = "/retryd.v1.RetryService/DecideStream";

/// RetryService. `Decide` is the generated service's, and so is every call that asks for an encoding.
#[derive(Debug)]
pub struct RetryRoutes<S> {
    pub(super) retryd: Retryd<S>,
    pub(super) generated: RetryServiceServer<Retryd<S>>,
}

impl<S> Clone for RetryRoutes<S> {
    fn clone(&self) -> Self {
        RetryRoutes { retryd: self.retryd.clone(), generated: self.generated.clone() }
    }
}

impl<S> NamedService for RetryRoutes<S> {
    const NAME: &'static str = RetryServiceServer::<Retryd<S>>::NAME;
}

impl<S: Store> Service<Request<Body>> for RetryRoutes<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.generated, cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let encoding = request.headers().get("grpc-encoding");
        if request.uri().path() != DECIDE_STREAM || encoding.is_some_and(|it| it != "identity") {
            return self.generated.call(request);
        }
        let deadline = request.extensions().get().copied();
        let peer = Peer::of(request.extensions()).clone();
        let answers = DecideStream::new(self.retryd.clone(), peer, deadline, request.into_body());
        let mut response = Response::new(Body::new(answers));
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        Box::pin(ready(Ok(response)))
    }
}
