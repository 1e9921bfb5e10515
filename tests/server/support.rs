//! A running server with small limits, a service with a method for each case, and a raw client.
use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use retryd::{
    admin::{
        metrics::Metrics,
        ports::{ConnectionCounts, Port},
    },
    clock::Clock,
    server::{
        About, AtOnce, Bound, ConnectInfo, Deadline, Drain, Ended, Health, Limits, Listen, Server,
    },
};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};
use tonic::{Status, body::Body, server::NamedService, service::Routes};
use tonic_health::{pb::health_server::HealthServer, server::HealthService};

/// Long enough for a busy machine; nothing that works takes so long.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn small() -> Limits {
    Limits {
        connections_max: 8,
        handshake_max: ms(200),
        request_max: ms(400),
        farewell: ms(500),
        drain_delay: ms(300),
        drain_timeout: ms(3000),
        ..Limits::default()
    }
}

pub(crate) struct Running {
    pub(crate) at: SocketAddr,
    pub(crate) probe: SocketAddr,
    pub(crate) drain: Drain,
    pub(crate) health: Health,
    pub(crate) metrics: Arc<Metrics>,
    /// Calls of `Echo` that were processed.
    pub(crate) echoes: Arc<AtomicU64>,
    pub(crate) task: JoinHandle<Ended>,
}

impl Running {
    pub(crate) async fn with(limits: Limits) -> Running {
        Running::on(limits, local().await).await
    }

    pub(crate) async fn on(limits: Limits, bound: Bound) -> Running {
        let probe = local().await;
        let health = Health::new().await;
        let metrics = Arc::new(Metrics::new());
        let drain = Drain::new();
        let echoes = Arc::new(AtomicU64::new(0));
        let hand = Hand { health: health.service(), echoes: Arc::clone(&echoes) };
        let (at, probe_at) = (address(&bound), address(&probe));
        let server = Server {
            listeners: vec![bound],
            probe: Some(probe),
            routes: Routes::new(health.service()).add_service(hand),
            at_once: Some(AtOnce::new("/retryd.v1.Hand/AtOnce", 1024, at_once)),
            limits,
            health: health.clone(),
            metrics: Arc::clone(&metrics),
            clock: Clock::system(),
            tls: None,
            traces: None,
        };
        let task = tokio::spawn(server.run(drain.clone()));
        health.ready().await;
        Running { at, probe: probe_at, drain, health, metrics, echoes, task }
    }

    pub(crate) fn counts(&self) -> &ConnectionCounts {
        self.metrics.connections(Port::Calls)
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::over(self.tcp().await).await
    }

    /// How it ended, and how long that took.
    pub(crate) async fn ended(self) -> Ended {
        timeout(SOON, self.task).await.expect("it ends").unwrap()
    }
}

pub(crate) async fn local() -> Bound {
    "127.0.0.1:0".parse::<Listen>().unwrap().bind().await.unwrap()
}

/// The address of a bound TCP socket; an address of nobody for a Unix socket.
fn address(bound: &Bound) -> SocketAddr {
    bound.local().to_string().parse().unwrap_or_else(|_| "127.0.0.1:1".parse().unwrap())
}

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let held = async {
        while !holds() {
            tokio::time::sleep(ms(5)).await;
        }
    };
    timeout(SOON, held).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// An HTTP/2 client that shows everything.
pub(crate) struct Client {
    pub(crate) send: SendRequest<Bytes>,
    pub(crate) connection: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    pub(crate) async fn over<IO>(io: IO) -> Client
    where
        IO: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (send, connection) = h2::client::handshake(io).await.unwrap();
        Client { send, connection: tokio::spawn(connection) }
    }

    /// A whole call, with one message.
    pub(crate) async fn call(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: &[u8],
    ) -> Answer {
        let open = self.open(method, headers, Some(message)).await;
        timeout(SOON, open.answer()).await.expect("an answer").expect("no reset")
    }

    /// Sends the head of a request, and one message if there is one.
    pub(crate) async fn open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: Option<&[u8]>,
    ) -> Open {
        self.try_open(method, headers, message).await.expect("an open connection")
    }

    /// The same; an error if the connection takes no new calls, and then nothing was sent.
    pub(crate) async fn try_open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: Option<&[u8]>,
    ) -> Result<Open, h2::Error> {
        let path = format!("http://retryd/retryd.v1.Hand/{method}");
        let mut request =
            Request::post(path).header("te", "trailers").header("content-type", "application/grpc");
        for (name, value) in headers {
            request.headers_mut().unwrap().insert(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let mut send = self.send.clone().ready().await?;
        let (response, mut body) = send.send_request(request.body(()).unwrap(), false)?;
        if let Some(message) = message {
            body.send_data(framed(0, message), true)?;
        }
        Ok(Open { response, body })
    }
}

/// A message with its length before it.
pub(crate) fn framed(compressed: u8, message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[compressed], &length[..], message].concat().into()
}

pub(crate) struct Open {
    response: h2::client::ResponseFuture,
    pub(crate) body: h2::SendStream<Bytes>,
}

impl Open {
    pub(crate) async fn answer(self) -> Result<Answer, h2::Error> {
        let (head, mut body) = self.response.await?.into_parts();
        let mut bytes = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            bytes.extend_from_slice(&data);
        }
        let trailers = body.trailers().await?;
        let ending = trailers.unwrap_or_else(|| head.headers.clone());
        Ok(Answer { http: head.status, head: head.headers, ending, bytes })
    }
}

pub(crate) struct Answer {
    pub(crate) http: StatusCode,
    pub(crate) head: HeaderMap,
    pub(crate) ending: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> Status {
        Status::from_header_map(&self.ending).expect("a gRPC status")
    }

    pub(crate) fn code(&self) -> tonic::Code {
        self.status().code()
    }
}

/// A service with a method for each case.
#[derive(Clone)]
struct Hand {
    health: HealthServer<HealthService>,
    echoes: Arc<AtomicU64>,
}

impl NamedService for Hand {
    const NAME: &'static str = "retryd.v1.Hand";
}

impl tower::Service<Request<Body>> for Hand {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let hand = self.clone();
        Box::pin(async move { Ok(hand.answer(request).await) })
    }
}

impl Hand {
    async fn answer(mut self, mut request: Request<Body>) -> Response<Body> {
        let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
        match method.as_str() {
            // tonic's own way of reading a message, under a path of retryd.
            "Check" | "Watch" => {
                *request.uri_mut() = format!("/grpc.health.v1.Health/{method}").parse().unwrap();
                tower::Service::call(&mut self.health, request).await.unwrap()
            }
            "Echo" | "AtOnce" => {
                self.echoes.fetch_add(1, Ordering::SeqCst);
                let info = *request.extensions().get::<ConnectInfo>().expect("a peer");
                let deadline = request.extensions().get::<Deadline>().copied();
                let now = Clock::system().now();
                let left = deadline.map(|deadline| deadline.remaining(now));
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                let mut response = streamed(tokio_stream::iter([
                    Ok(Frame::data(bytes)),
                    Ok(Frame::trailers(HeaderMap::from_iter([(
                        "grpc-status".parse().unwrap(),
                        "0".parse().unwrap(),
                    )]))),
                ]));
                response.headers_mut().insert("x-peer", format!("{info:?}").parse().unwrap());
                response.headers_mut().insert("x-left", format!("{left:?}").parse().unwrap());
                response
            }
            "Slow" => {
                tokio::time::sleep(SLOW).await;
                Status::ok("").into_http()
            }
            "PanicSlow" => {
                tokio::time::sleep(SLOW).await;
                panic!("a bug")
            }
            "Stuck" => std::future::pending().await,
            "Panic" => panic!("a bug"),
            "PanicLater" => streamed(Bug),
            "Open" => streamed(tokio_stream::StreamExt::chain(
                tokio_stream::iter([Ok(Frame::data(Bytes::from_static(b"first")))]),
                tokio_stream::pending(),
            )),
            // Ready for ever: only the client's window ends it.
            "Flood" => streamed(tokio_stream::iter(std::iter::repeat_with(|| {
                Ok(Frame::data(Bytes::from(vec![0; 8192])))
            }))),
            other => panic!("no method {other}"),
        }
    }
}

/// What `Echo` does, without a service.
fn at_once(message: &[u8], _: About<'_>) -> Result<Bytes, Status> {
    match message {
        b"panic" => panic!("a bug"),
        b"refuse" => Err(Status::invalid_argument("refused")),
        _ => Ok(framed(0, message)),
    }
}

/// How long the method `Slow` takes.
pub(crate) const SLOW: Duration = Duration::from_millis(300);

fn streamed<S>(stream: S) -> Response<Body>
where
    S: tokio_stream::Stream<Item = Result<Frame<Bytes>, Status>> + Send + 'static,
{
    Response::new(Body::new(http_body_util::StreamBody::new(stream)))
}

struct Bug;

impl tokio_stream::Stream for Bug {
    type Item = Result<Frame<Bytes>, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        panic!("a bug in a stream")
    }
}
