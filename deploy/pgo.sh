#!/usr/bin/env bash
# Builds retryd, puts it under load, and builds it again by what that load ran through: profile-guided optimisation. The result is
# target/pgo/retryd. Takes two release builds, one of the load, and half a minute of load.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TARGET="${CARGO_TARGET_DIR:-$PWD/target}"
readonly PROFILES="$TARGET/pgo/profiles"
readonly PROFILE="$TARGET/pgo/retryd.profdata"

main() {
    local profdata
    # First of all: without it, nothing of the rest is of use.
    profdata=$(find_profdata)
    rm -rf "$PROFILES"
    build training "-Cprofile-generate=$PROFILES"
    RETRYD_BIN="$(built training)" cargo bench --locked --profile stock --bench compare -- train
    "$profdata" merge --output "$PROFILE" "$PROFILES"
    build guided "-Cprofile-use=$PROFILE"
    cp "$(built guided)" "$TARGET/pgo/retryd"
    printf 'built %s\n' "$TARGET/pgo/retryd"
}

build() {
    # With a target named, the flags are not for build scripts and macros.
    RUSTFLAGS="$2" cargo build --locked --release --bin retryd --target "$(host)" --target-dir "$TARGET/pgo/$1"
}

built() {
    printf '%s' "$TARGET/pgo/$1/$(host)/release/retryd"
}

host() {
    rustc -vV | sed -n 's/^host: //p'
}

# The one that belongs to rustc; else Debian's, which reads the same profiles from LLVM 19 on.
find_profdata() {
    local own llvm
    own=$(find "$(rustc --print sysroot)/lib/rustlib" -name llvm-profdata -print -quit)
    if [[ -n $own ]]; then
        echo "$own"
        return
    fi
    for llvm in 22 21 20 19; do
        if command -v "llvm-profdata-$llvm"; then return; fi
    done
    printf 'deploy/pgo.sh: no llvm-profdata: "rustup component add llvm-tools", or the Debian package llvm-19\n' >&2
    return 1
}

main "$@"
