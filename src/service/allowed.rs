//! Who may ask: asked first, before anything else of a question is looked at.
use super::Retryd;
use crate::budget::Store;
use crate::decider::InForce;
use crate::server::Peer;
use crate::wire::refusal::Refusal;

impl<S: Store> Retryd<S> {
    /// The revision that lets this caller ask for `tenant`, to be asked by.
    pub(super) fn allowed(&self, peer: &Peer, tenant: &str) -> Result<InForce<S>, Refusal> {
        let in_force = self.decider.in_force();
        let may = in_force.policies().allow(peer.names(), tenant);
        self.counted(if may { Ok(in_force) } else { Err(foreign(peer)) })
    }

    /// The revision that knows this caller.
    pub(super) fn known(&self, peer: &Peer) -> Result<InForce<S>, Refusal> {
        let in_force = self.decider.in_force();
        let is_known = in_force.policies().know(peer.names());
        self.counted(if is_known { Ok(in_force) } else { Err(foreign(peer)) })
    }
}

fn foreign(peer: &Peer) -> Refusal {
    // The tenant is what the caller says, and stays out of the log. The names are proven.
    tracing::debug!(names = ?peer.names(), "refused: not this caller's tenant");
    Refusal::TenantForeign
}
