# The only door: what CI runs, people run with the same words.

nexus3-sim := env("CARGO_TARGET_DIR", "target") / "debug/nexus3-sim"

# Everything that must hold before a commit.
default: check test

# With the whole workspace, so that dependencies are built once for all recipes.
[private]
build-sim:
    cargo build -q --workspace --bin nexus3-sim

# Formatting, lints and the shape of the code.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test -q --workspace --test tidy --test bans

# All tests.
test:
    cargo test --workspace

# Runs scenarios against their snapshots: `just sim scenarios/*.toml --seed 1..20`.
sim *ARGS: build-sim
    {{nexus3-sim}} run {{ARGS}}

# Proves that runs are deterministic: `just twice scenarios/*.toml`.
twice *ARGS: build-sim
    {{nexus3-sim}} twice {{ARGS}}

# Crashes the server at every durable point of a run: `just crash scenarios/*.toml -j 2 --sample 50`.
crash *ARGS: build-sim
    {{nexus3-sim}} crash {{ARGS}}

# Draws what goes wrong from each seed: `just explore scenarios/*.toml --seeds 0..1000 --profile chaos`.
explore *ARGS: build-sim
    {{nexus3-sim}} explore {{ARGS}}

# The smallest scenario that still fails: `just shrink failing.toml > small.toml`.
shrink *ARGS: build-sim
    {{nexus3-sim}} shrink {{ARGS}}

# A scenario's model as a real HTTP server: `just model scenarios/x.toml --port 9001`.
model *ARGS: build-sim
    {{nexus3-sim}} model {{ARGS}}

# A scenario's steps against a real server: `just conform http://localhost:8765 scenarios/x.toml`.
conform *ARGS: build-sim
    {{nexus3-sim}} conform {{ARGS}}

# Plants each bug of tests/planted and expects it to be found: `just planted recovery_skipped`, `just planted -j 2`.
planted *NAMES:
    .ci/planted {{NAMES}}

# Looks at reports with a real browser, which it installs where there is none; keeps screenshots.
browser: build-sim
    .ci/browser

# Runs agents against MCP servers that others wrote, and our server under a client of others; installs them.
interop:
    .ci/interop

# Keeps the transcripts of good runs as snapshots: `just bless scenarios/x.toml`.
bless *ARGS: build-sim
    {{nexus3-sim}} run --bless {{ARGS}}

# The server on its built-in model, in release mode: `just run --port 9000`.
run *ARGS:
    cargo run --release -- serve {{ARGS}}

# Speeds and sizes against their yardsticks: `just bench --brief`, `just bench --only send`.
bench *ARGS:
    cargo bench --bench targets -- {{ARGS}}

# Accepts changed help texts (insta snapshots of the tests).
accept:
    INSTA_UPDATE=always cargo test --workspace --test cli
