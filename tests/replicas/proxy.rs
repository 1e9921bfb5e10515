//! A way to the store that can be made slow, or lead nowhere.
use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// What comes is held up so long, each way.
    Slow(Duration),
    /// So many bytes pass in a millisecond, each way.
    Narrow(u32),
    /// What comes is taken, and goes nowhere.
    Nowhere,
}

pub(crate) struct Proxy {
    port: u16,
    way: watch::Sender<Way>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (way, seen) = watch::channel(Way::Open);
        let port_here = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(join(near, port, seen.clone()));
            }
        });
        Proxy { port: port_here, way, _task: AbortOnDropHandle::new(task) }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn join(near: TcpStream, port: u16, way: watch::Receiver<Way>) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    tokio::join!(pump(near_read, far_write, way.clone()), pump(far_read, near_write, way));
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, way: watch::Receiver<Way>) {
    let mut bytes = vec![0; 1 << 16];
    // A stream with a hole in it would be another fault.
    let mut is_lost = false;
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let now = *way.borrow();
        is_lost |= now == Way::Nowhere;
        match now {
            Way::Slow(time) => sleep(time).await,
            Way::Narrow(bytes) => {
                sleep(Duration::from_secs_f64(count as f64 / f64::from(bytes) / 1_000.0)).await;
            }
            Way::Open | Way::Nowhere => {}
        }
        if !is_lost && to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
