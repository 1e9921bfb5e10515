//! The codec of the contract's messages. It decodes for itself, so that broken bytes end in
//! retryd's own error and not in the library's INTERNAL.
use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::refusal::Refusal;

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
}

impl<M: Message + Default> Decoder for Half<M> {
    type Item = M;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<M>, Status> {
        M::decode(buf).map(Some).map_err(|_| Refusal::NotProtobuf.into())
    }
}
