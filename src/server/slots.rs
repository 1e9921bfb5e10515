//! The places of one limit: taken one by one, each given back when it is dropped.
use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;

/// So many places, and how many are taken.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Semaphore,
    taken: Gauge,
}

impl Slots {
    pub(crate) fn new(max: usize, taken: Gauge) -> Arc<Slots> {
        let free = Semaphore::new(max.min(Semaphore::MAX_PERMITS));
        Arc::new(Slots { free, taken })
    }

    /// A place. `None` if all are taken.
    pub(crate) fn take(self: &Arc<Slots>) -> Option<Slot> {
        self.free.try_acquire().ok()?.forget();
        self.taken.inc();
        Some(Slot(Arc::clone(self)))
    }
}

/// One place. It is given back when dropped: also when a call is cancelled, or panics.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.dec();
        self.0.free.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_allowed_and_each_comes_back() {
        let taken = Gauge::default();
        let slots = Slots::new(2, taken.clone());
        let (first, second) = (slots.take(), slots.take());
        assert!(first.is_some() && second.is_some());
        assert!(slots.take().is_none());
        assert_eq!(taken.get(), 2);
        drop(first);
        assert_eq!(taken.get(), 1);
        let third = slots.take();
        assert!(third.is_some());
        assert!(slots.take().is_none());
        drop((second, third));
        assert_eq!(taken.get(), 0);
    }
}
