//! A decision on its way to bytes, its names borrowed. [`pb::Decision`] owns three texts: three allocations for what is
//! written once and thrown away.
use bytes::{BufMut, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::{codec::ToWire, decision, pb};
use crate::decider::Answer;

/// The numbers of the fields that are written here.
const POLICY: u32 = 6;
const POLICY_REVISION: u32 = 7;
const BUDGET: u32 = 8;
/// In `BudgetState`.
const BUDGET_NAME: u32 = 1;
/// In `StreamedDecision`.
const DECISION: u32 = 1;

/// A `Decision`.
pub struct Borrowed<'a> {
    policy: &'a str,
    revision: &'a str,
    budget: Option<Budget<'a>>,
    /// All other fields.
    rest: pb::Decision,
}

struct Budget<'a> {
    name: &'a str,
    rest: pb::BudgetState,
}

impl<'a> Borrowed<'a> {
    /// What [`decision::write`] writes.
    pub fn of(answer: &Answer<'a>, explain: bool) -> Borrowed<'a> {
        let budget = answer.budget.map(|state| {
            let rest = pb::BudgetState {
                budget: String::new(),
                retries_available: state.available,
                retries_capacity: state.capacity,
            };
            Budget { name: state.budget, rest }
        });
        let rest = decision::nameless(answer, explain);
        Borrowed { policy: answer.policy, revision: answer.revision, budget, rest }
    }
}

impl ToWire for Borrowed<'_> {
    fn encoded_len(&self) -> usize {
        let budget = self.budget.as_ref().map_or(0, |budget| part_len(BUDGET, budget));
        text_len(POLICY, self.policy)
            + text_len(POLICY_REVISION, self.revision)
            + budget
            + self.rest.encoded_len()
    }

    fn encode(&self, bytes: &mut BytesMut) {
        self.rest.encode(bytes);
        put_text(POLICY, self.policy, bytes);
        put_text(POLICY_REVISION, self.revision, bytes);
        if let Some(budget) = &self.budget {
            put_part(BUDGET, budget, bytes);
        }
    }
}

impl ToWire for Budget<'_> {
    fn encoded_len(&self) -> usize {
        text_len(BUDGET_NAME, self.name) + self.rest.encoded_len()
    }

    fn encode(&self, bytes: &mut BytesMut) {
        put_text(BUDGET_NAME, self.name, bytes);
        self.rest.encode(bytes);
    }
}

/// The same as a `StreamedDecision`.
pub struct Streamed<'a>(pub Borrowed<'a>);

impl ToWire for Streamed<'_> {
    fn encoded_len(&self) -> usize {
        part_len(DECISION, &self.0)
    }

    fn encode(&self, bytes: &mut BytesMut) {
        put_part(DECISION, &self.0, bytes);
    }
}

fn text_len(field: u32, text: &str) -> usize {
    if text.is_empty() { 0 } else { delimited_len(field, text.len()) }
}

fn put_text(field: u32, text: &str, bytes: &mut BytesMut) {
    if !text.is_empty() {
        put_head(field, text.len(), bytes);
        bytes.put_slice(text.as_bytes());
    }
}

fn part_len(field: u32, part: &impl ToWire) -> usize {
    delimited_len(field, part.encoded_len())
}

fn put_part(field: u32, part: &impl ToWire, bytes: &mut BytesMut) {
    put_head(field, part.encoded_len(), bytes);
    part.encode(bytes);
}

fn delimited_len(field: u32, length: usize) -> usize {
    key_len(field) + encoded_len_varint(length as u64) + length
}

fn put_head(field: u32, length: usize, bytes: &mut BytesMut) {
    encode_key(field, WireType::LengthDelimited, bytes);
    encode_varint(length as u64, bytes);
}
