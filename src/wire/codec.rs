//! The codec of the contract's messages. It decodes for itself, so that broken bytes end in
//! retryd's own error and not in the library's INTERNAL.
use std::marker::PhantomData;

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use prost::Message;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::refusal::Refusal;

/// What is set aside for messages before there is one, and how much of a stream that is ready goes
/// into one write. A question or an answer is some hundred bytes.
fn buffer() -> BufferSettings {
    BufferSettings::new(1 << 10, 16 << 10)
}

/// Encodes `T`, decodes `U`.
#[derive(Debug)]
pub struct ContractCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for ContractCodec<T, U> {
    fn default() -> Self {
        ContractCodec(PhantomData)
    }
}

impl<T, U> Codec for ContractCodec<T, U>
where
    T: Message + 'static,
    U: Message + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Half<T>;
    type Decoder = Half<U>;

    fn encoder(&mut self) -> Half<T> {
        Half(PhantomData)
    }

    fn decoder(&mut self) -> Half<U> {
        Half(PhantomData)
    }
}

/// One direction of a [`ContractCodec`].
#[derive(Debug)]
pub struct Half<M>(PhantomData<M>);

impl<M: Message> Encoder for Half<M> {
    type Item = M;
    type Error = Status;

    fn encode(&mut self, message: M, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buf).map_err(|_| Status::internal("the answer does not fit its buffer"))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffer()
    }
}

impl<M: Message + Default> Decoder for Half<M> {
    type Item = M;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<M>, Status> {
        decode(buf).map(Some)
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffer()
    }
}

/// Reads a message.
///
/// # Errors
///
/// NOT_PROTOBUF.
pub fn decode<M: Message + Default>(bytes: impl Buf) -> Result<M, Status> {
    M::decode(bytes).map_err(|_| Refusal::NotProtobuf.into())
}

/// The bytes before each message: compressed or not, and its length.
pub const PREFIX: usize = 5;

/// What can be written as a message.
pub trait ToWire {
    /// How many bytes [`ToWire::encode`] writes.
    fn encoded_len(&self) -> usize;
    /// Writes the message to the end of `bytes`.
    fn encode(&self, bytes: &mut BytesMut);
}

impl<M: Message> ToWire for M {
    fn encoded_len(&self) -> usize {
        Message::encoded_len(self)
    }

    fn encode(&self, bytes: &mut BytesMut) {
        self.encode_raw(bytes);
    }
}

/// A message behind its prefix.
pub fn framed(message: &impl ToWire) -> Bytes {
    let mut bytes = BytesMut::new();
    frame(message, &mut bytes);
    bytes.freeze()
}

/// Writes a message behind its prefix: not compressed, and its length.
pub fn frame(message: &impl ToWire, bytes: &mut BytesMut) {
    let length = message.encoded_len();
    bytes.reserve(PREFIX + length);
    bytes.put_u8(0);
    // No answer comes near the limit of the prefix.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(bytes);
}
