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
