//! An HTTP client whose failed calls are brought to retryd.
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioExecutor;
use retryd_client::{BoxError, Call, Client, Operation, Settings};
use tower::{ServiceBuilder, ServiceExt as _};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::new(Settings {
        operations: [("charge".into(), Operation::keyed("idempotency-key"))].into(),
        ..Settings::new("dns:///127.0.0.1:50051", "shop-1")
    })?;

    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
    let service = ServiceBuilder::new().layer(client.layer()).service(http);

    let call = Call {
        operation: Some("charge".into()),
        deadline: Some(Instant::now() + Duration::from_secs(2)),
        ..Call::default()
    };
    let request = Request::post("http://127.0.0.1:8080/payments/4711")
        .header("idempotency-key", "4711-1")
        .extension(call)
        .body(Full::new(Bytes::from(r#"{"amount": 5}"#)))?;
    println!("{}", service.oneshot(request).await?.status());

    client.close().await;
    Ok(())
}
