//! Generates the gRPC stubs from `proto/`, with protox in place of protoc.
use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const CONTRACT: &str = "retryd/v1/retryd.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile([CONTRACT], ["proto"])?;
    let encoded = descriptors.encode_to_vec();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Served by reflection, so that a generic client needs no proto file.
    fs::write(out.join("retryd.v1.descriptors.bin"), &encoded)?;

    tonic_prost_build::configure()
        .compile_well_known_types(true)
        .extern_path(".google.protobuf", "::pbjson_types")
        // Decodes for itself, so that a broken message is answered in retryd's own words.
        .codec_path("crate::wire::codec::ContractCodec")
        .compile_fds(descriptors)?;
    pbjson_build::Builder::new().register_descriptors(&encoded)?.build(&[".retryd.v1"])?;
    Ok(())
}
