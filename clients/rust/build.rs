//! Generates the stubs from the contract, with protox in place of protoc.
use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let descriptors = protox::compile(["retryd/v1/retryd.proto"], [PROTO])?;
    // The tests read proto-JSON by it.
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().build_server(false).compile_fds(descriptors)?;
    Ok(())
}
