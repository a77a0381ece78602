# The only door: what CI runs, people run with the same words.

# Everything that must hold before a commit.
default: check test

# Formatting, lints and the shape of the code.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test -q -p nexus3 --test tidy --test bans

# All tests.
test:
    cargo test --workspace

# The server on its built-in model, in release mode: `just run --port 9000`.
run *ARGS:
    cargo run --release -- serve {{ARGS}}

# Speeds and sizes against their yardsticks: `just bench --brief`, `just bench --only send`.
bench *ARGS:
    cargo bench --bench targets -- {{ARGS}}

# Accepts changed help texts and other insta snapshots of the tests.
bless:
    INSTA_UPDATE=always cargo test --workspace
