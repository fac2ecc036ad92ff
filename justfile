# What a person types. Everything with logic is Rust, in crates/xtask; continuous integration runs the same.

# the recipes
default:
    @just --list

# format, lint, hold the rules of the repository, build the documentation
check:
    cargo xtask check

# the tests that need nothing but Rust; what needs more says that it was skipped
test:
    cargo test --workspace

# the end-to-end tests with every peer, installed if missing
e2e:
    cargo xtask e2e

# everything, as continuous integration runs it
all:
    cargo xtask test

# every fuzz target for a minute, or one of them for so many seconds
fuzz *WORDS:
    cargo xtask fuzz {{WORDS}}

# the comparison of benches/plan.json: direct, through a bare proxy, through the gate
bench:
    cargo build --release -p echo-upstream -p bare-proxy -p mcpload -p tollhouse
    target/release/mcpload compare --plan benches/plan.json --out target/bench

# the tables of clippy.toml and the documents that are made from code
docs:
    cargo xtask rooms --write
    cargo xtask docs --write

# what a call costs, against a bare proxy: the plan of benches/plan.json, or with other words for `mcpload compare`
bench *WORDS:
    cargo build --release --locked -p echo-upstream -p bare-proxy -p mcpload -p tollhouse
    target/release/mcpload compare --plan benches/plan.json --out target/bench {{WORDS}}
