//! A cluster of three masters.
use super::{Flavour, Server, free_port, wait_for};

pub(crate) struct Cluster {
    pub(crate) nodes: [Server; 3],
}

impl Cluster {
    pub(crate) fn start(flavour: Flavour) -> Cluster {
        let nodes = [0, 1, 2].map(|_| {
            let bus = free_port().to_string();
            let options = [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "2000",
            ];
            let server = Server::with(flavour, &options);
            (server, bus)
        });
        let slots = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (place, ((node, _), (first, last))) in nodes.iter().zip(slots).enumerate() {
            let () = node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
            let () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
        }
        for (other, bus) in &nodes[1..] {
            let port = other.port.to_string();
            let () = nodes[0].0.ask(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        let cluster = Cluster { nodes: nodes.map(|(node, _)| node) };
        wait_for("a cluster", || cluster.nodes.iter().all(is_whole));
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let [a, b, c] = &self.nodes;
        format!("redis-cluster://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", a.port, b.port, c.port)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.nodes.iter().flat_map(Server::keys).collect()
    }
}

fn is_whole(node: &Server) -> bool {
    let info: String = node.ask(&["CLUSTER", "INFO"]);
    ["cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3"]
        .iter()
        .all(|line| info.contains(line))
}

/// A slot on its way to another node, as `redis-cli --cluster reshard` moves it.
pub(crate) struct Moving<'c> {
    from: &'c Server,
    to: &'c Server,
    slot: String,
    to_id: String,
}

impl<'c> Moving<'c> {
    /// Moves `key`, the only one in its slot. The other node serves it to those who are sent there.
    pub(crate) fn begin(from: &'c Server, to: &'c Server, key: &str) -> Moving<'c> {
        let slot = from.ask::<u64>(&["CLUSTER", "KEYSLOT", key]).to_string();
        let id = |node: &Server| node.ask::<String>(&["CLUSTER", "MYID"]);
        let (from_id, to_id) = (id(from), id(to));
        let () = to.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        let () = from.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
        let port = to.port.to_string();
        let () = from.ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        Moving { from, to, slot, to_id }
    }

    /// From now on the slot is the other node's.
    pub(crate) fn end(self) {
        for node in [self.to, self.from] {
            let () = node.ask(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.to_id]);
        }
    }
}
