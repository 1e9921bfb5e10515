//! HTTP/2 and nothing above it: reads the request, writes the bytes of one answer, and batches writes as retryd does. What a
//! gRPC server over h2 costs more than this is its own.
use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Response};
use prost::Message as _;
use retryd::server::Batching;
use tokio::net::{TcpListener, TcpStream};

use crate::stock;

pub(crate) fn serve() {
    answer(&stock::constant().encode_to_vec());
}

/// Answers every call with this message.
#[tokio::main]
pub(crate) async fn answer(message: &[u8]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let answer = Bytes::from([&[0], &length[..], message].concat());
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(connection(socket, answer.clone()));
    }
}

async fn connection(socket: TcpStream, answer: Bytes) {
    socket.set_nodelay(true).unwrap();
    let Ok(mut connection) = h2::server::handshake(Batching::over(socket)).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call(request.into_body(), respond, answer.clone()));
    }
}

async fn call(mut body: RecvStream, mut respond: SendResponse<Bytes>, answer: Bytes) {
    while let Some(Ok(bytes)) = body.data().await {
        body.flow_control().release_capacity(bytes.len()).unwrap();
    }
    let mut head = Response::new(());
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    // Fails if the client has gone.
    let Ok(mut stream) = respond.send_response(head, false) else { return };
    stream.send_data(answer, false).ok();
    stream.send_trailers(trailers).ok();
}
